"""One sentence on what each metric means."""

MEANINGS = {
    "mean": "Plain mean of the episodes' values; more is better.",
    "saturation_value": "The best smoothed level that a block reaches; more is better.",
    "time_to_saturation": "Episodes until a block reaches its best level; fewer is better.",
    "normalized_integral": "Area under the smoothed curve by the block's length; more is better.",
    "recovery_time": "Episodes until an agent is as good as before a change; fewer is better.",
    "performance_maintenance_saturation_value": (
        "How much of the level of a task was lost by the next time it comes; above 0 is forgetting."
    ),
    "performance_maintenance_time_to_saturation": (
        "How many more episodes the level of a task takes when it comes again."
    ),
    "perf_recovery": "How recovery times change over a lifetime; above 0, they become shorter.",
    "perf_maintenance_anlp": (
        "How well tasks are kept between their trainings; below 0 is forgetting."
    ),
    "perf_maintenance_mrlep": "The same, by the most recent evaluation after a training.",
    "forward_transfer_ratio": "Gain of a task from those trained before it; above 1 helps.",
    "backward_transfer_ratio": "Gain of an earlier task from a later training; above 1 helps.",
    "forward_transfer_contrast": "The same as a share of both levels; above 0 helps.",
    "backward_transfer_contrast": "The same as a share of both levels; above 0 helps.",
    "ste_rel_perf": "Performance against an expert of the single task; 1 is as good.",
    "sample_efficiency": "How fast a level is reached against an expert of the single task.",
}
