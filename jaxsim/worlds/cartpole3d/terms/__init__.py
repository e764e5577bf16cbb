"""Optional terms of forces, pushes and sensors, compiled where `Config.terms` names them."""
