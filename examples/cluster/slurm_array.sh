#!/bin/bash
# A study as a job array: each job runs one part of the tasks, with plain commands and no Dask.
#
#   sbatch slurm_array.sh                          runs the parts
#   bash slurm_array.sh                            afterwards: joins them, prints the verdicts
#   sbatch --array=3,7 slurm_array.sh              runs two parts again, which resume
#
#SBATCH --job-name=solvable
#SBATCH --array=1-10
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=02:00:00
#SBATCH --requeue
set -euo pipefail

# The last number of --array. Not SLURM_ARRAY_TASK_COUNT: it is smaller if only some parts are submitted again.
PARTS=${PARTS:-10}
# Another study: `sbatch slurm_array.sh SYSTEM --output DIRECTORY ...`, and the same words for `bash`.
if [ $# -eq 0 ]; then
  set -- quadratic-network --preset paper --output quadratic-paper
fi
# Activate your environment here, for example: source ~/venv/bin/activate

if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
  exec solvable run "$@" --part "$SLURM_ARRAY_TASK_ID/$PARTS" --workers "${SLURM_CPUS_PER_TASK:-1}" --progress
fi
exec solvable run "$@"
