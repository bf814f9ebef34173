#!/bin/bash
# Runs on every node after the start command; its log goes with the model.
cp log/train.log output/
echo "end_hook: kept $(ls output | tr '\n' ' ')"
