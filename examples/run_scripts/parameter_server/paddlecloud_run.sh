#!/bin/bash
# Two trainers and two parameter servers, written with the flags of the first release.
cd "$(dirname "$0")" || exit 1
ak=${PADDLECLOUD_AK:?your access key}
sk=${PADDLECLOUD_SK:?your secret key}
group_name=${GROUP_NAME:?your group}

answer=$(paddlecloud job --ak "${ak}" --sk "${sk}" train \
    --job-name "clicks_ps:$(date +%Y%m%d)" \
    --group-name "${group_name}" \
    --job-conf config.ini \
    --start-cmd "cd wide_and_deep && OUTPUT_PATH=../output python train.py" \
    --file-dir ../../wide_and_deep \
    --job-version paddle-v3.0.0 \
    --k8s-not-local \
    --distribute-job-type PSERVER \
    --k8s_trainers 2 \
    --k8s_pservers_count 2 \
    --k8s_pscpu_cores 1 \
    --k8s_psmemory 2Gi \
    --k8s-cpu-cores 1 \
    --k8s-memory 2Gi \
    --k8s-wall-time 00:10:00 ${FLAGS}) || { echo "${answer}"; exit 1; }
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
