#!/bin/bash
# What an executor of Spark runs in a pod: Spark describes it by the environment.
set -euo pipefail
if [ "${1:-}" != executor ]; then
  echo "executor.sh is started by Spark, with the argument executor" >&2
  exit 2
fi
jars=$("$PYSPARK_PYTHON" -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent / "jars")')
options=()
while IFS= read -r name; do
  options+=("${!name}")
done < <(compgen -v SPARK_JAVA_OPT_ | sort --version-sort)
exec java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
  -cp "${SPARK_CONF_DIR:-/opt/spark/conf}:$jars/*" \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
  --driver-url "$SPARK_DRIVER_URL" \
  --executor-id "$SPARK_EXECUTOR_ID" \
  --cores "$SPARK_EXECUTOR_CORES" \
  --app-id "$SPARK_APPLICATION_ID" \
  --hostname "$SPARK_EXECUTOR_POD_IP" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
  --podName "$SPARK_EXECUTOR_POD_NAME"
