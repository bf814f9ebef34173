#!/bin/bash
# Two trainers of one model; each is a rank and averages gradients with the other.
cd "$(dirname "$0")" || exit 1
ak=${PADDLECLOUD_AK:?your access key}
sk=${PADDLECLOUD_SK:?your secret key}
group_name=${GROUP_NAME:?your group}

answer=$(paddlecloud job --ak "${ak}" --sk "${sk}" train \
    --job-name "shapes_collective:$(date +%Y%m%d)" \
    --group-name "${group_name}" \
    --job-conf config.ini \
    --start-cmd "cd collective && OUTPUT_PATH=../output python train.py" \
    --file-dir ../../collective \
    --job-version paddle-v3.0.0 \
    --is-standalone 0 \
    --distribute-job-type "NCCL2" \
    --k8s-trainers 2 \
    --k8s-cpu-cores 1 \
    --k8s-memory 2Gi \
    --wall-time 00:10:00 ${FLAGS}) || { echo "${answer}"; exit 1; }
echo "${answer}"
[ -n "${FLAGS}" ] && exit 0

job_id=$(echo "${answer}" | grep '"jobId"' | awk -F '"' '{print $4}')
while true; do
    status=$(paddlecloud job --ak "${ak}" --sk "${sk}" state "${job_id}" |
        grep '"jobStatus"' | awk -F '"' '{print $4}')
    case ${status} in
        success) break ;;
        fail | killed) echo "${job_id} ${status}"; exit 1 ;;
    esac
    sleep 1
done
echo "${job_id} ${status}"
