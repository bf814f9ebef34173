#!/bin/bash
# Submits this folder with the second client and waits for its end, as such scripts always have.
ak=${PADDLECLOUD_AK:-youraccesskey}
sk=${PADDLECLOUD_SK:-yoursecretkey}
group_name=${GROUP_NAME:-my-group}
job_name=line_fit:$(date +%Y%m%d)
wall_time="00:10:00"

answer=$(paddlecloud job --ak "${ak}" --sk "${sk}" train \
    --job-name "${job_name}" \
    --group-name "${group_name}" \
    --job-conf config.ini \
    --start-cmd "python train.py" \
    --files train.py before_hook.sh end_hook.sh \
    --job-version paddle-v2.4.1 \
    --k8s-trainers 2 \
    --k8s-cpu-cores 1 \
    --k8s-memory 256Mi \
    --is-standalone 0 \
    --distribute-job-type "NCCL2" \
    --k8s-priority high \
    --wall-time ${wall_time} \
    --job-remark "y = 3 x - 2") || { echo "${answer}"; exit 1; }
echo "${answer}"

job_id=$(echo "${answer}" | grep '"jobId"' | awk -F '"' '{print $4}')
while true; do
    status=$(paddlecloud job state "${job_id}" | grep '"jobStatus"' | awk -F '"' '{print $4}')
    case ${status} in
        success) break ;;
        fail | killed) exit 1 ;;
    esac
    sleep 1
done
echo "${job_id} ${status}"
