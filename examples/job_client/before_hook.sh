#!/bin/bash
# Runs on every node before the start command; a failure stops the job.
echo "before_hook: $(ls train_data | wc -l) files for trainer ${PADDLE_TRAINER_ID}"
