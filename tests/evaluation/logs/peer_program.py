"""Write a log with the real l2logger; run by the interpreter that has it, without this package.

Standard input is a JSON object: base, logger_info, scenario_info, records. The directory that was
written is printed.
"""

import json
import sys

from l2logger.l2logger import DataLogger

job = json.load(sys.stdin)
logger = DataLogger(job["base"], "golden", job["logger_info"], job["scenario_info"])
for record in job["records"]:
    logger.log_record(record)
logger.close()
print(logger.scenario_dir)
