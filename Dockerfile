# The gateway as an image. One stage compiles; the other has the packages that run and nothing else. How it is used: docs/operate/deploy.md.
# `node scripts/build-image.mjs` builds it with buildah and tries it, and .ci/run does so too.

FROM node:22-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The packages that a build needs are a workspace. What only tests and checks need is left out.
COPY scripts/build-packages scripts/build-packages
RUN npm ci --omit=dev
COPY tsconfig.json ./
COPY scripts scripts
COPY src src
RUN node scripts/build.mjs --without-types

FROM node:22-slim
WORKDIR /app
# A container that goes takes its folders with it: a reply ends when its usage is committed, so that nothing waits in a journal that may
# be lost. With a volume at /data, SETTLE=journal is faster and as safe.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8787 DATA_DIR=/data SETTLE=postgres
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --workspaces=false && npm cache clean --force
COPY LICENSE CHANGELOG.md SECURITY.md ./
COPY catalog catalog
COPY migrations migrations
COPY --from=build /app/dist dist
RUN ln -s /app/dist/cli/brigade.js /usr/local/bin/brigade && install -d -m 700 -o 1000 -g 1000 /data
# The account "node" of the base image, by number, so that Kubernetes can see that it is not root. Only /data is ever written.
USER 1000:1000
EXPOSE 8787
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/livez`).then(reply => process.exit(reply.ok ? 0 : 1), () => process.exit(1))"]
# The program itself is what gets SIGTERM: it lets running calls end for DRAIN_MS, flushes and exits with 0.
CMD ["node", "--max-semi-space-size=32", "--enable-source-maps", "dist/main.js"]
