/**
 * Bundles the compiled programs of dist/ with the packages that they import, so that an installed package of the gateway has few files and few dependencies.
 * Decision 0806 gives the reasons.
 */
import { dirname, join, relative, sep } from 'node:path'
import { rolldown } from 'rolldown'
import { root } from './paths.mjs'

const dist = join(root, 'dist')

/** Packages that stay dependencies, because they have WebAssembly or native code beside their JavaScript. */
export const keptDependencies = ['@electric-sql/pglite', 'sharp']

/** Packages that another package loads only where a person installed them. */
const optional = /^pg-native$/

/** The programs that node, another process or a worker thread starts by its path. Each keeps its path. */
const programs = [
  'main',
  'cli/brigade',
  'cli/brigade-gateway',
  'platform/db/embedded/db-embedded-worker',
  'platform/media/audio-length-worker',
  'composition/flush-thread/flush-worker',
]

/** The packages of the AWS SDK that the gateway imports. The gateway loads some without waiting, so they are CommonJS files with the names on the right. */
const sdkFiles = {
  '@aws-sdk/client-s3': 'client-s3',
  '@aws-sdk/credential-provider-node': 'credential-provider-node',
  '@aws-sdk/nested-clients/sts': 'sts',
  '@smithy/core/event-streams': 'event-streams',
  '@smithy/node-http-handler': 'node-http-handler',
  '@smithy/signature-v4': 'signature-v4',
}

/** The entries of `imports` in package.json through which the bundled programs find the files of the AWS SDK. */
export const bundledImports = { '#aws/*': './dist/aws/*.cjs' }
const importOf = name => `#aws/${sdkFiles[name]}`

const isKept = id => keptDependencies.some(name => id === name || id.startsWith(`${name}/`))
const slashed = path => path.split(sep).join('/')

/** The name that a bundle has in place of the address of a module, until its files are written. */
const addressMark = '__brigadeAddressOf'

/**
 * Returns the plugin that keeps the address of each module. A module finds files relative to its own path in dist/, but a bundle has it in another file.
 */
function moduleAddresses() {
  return {
    name: 'module-addresses',
    transform(code, id) {
      if (!id.startsWith(dist + sep) || !code.includes('import.meta.url')) return null
      return code.replaceAll('import.meta.url', `${addressMark}(${JSON.stringify(slashed(relative(dist, id)))})`)
    },
    renderChunk(code, { fileName }) {
      if (!code.includes(addressMark)) return null
      return code.replaceAll(/__brigadeAddressOf\("([^"]+)"\)/g, (_, path) => {
        const from = slashed(relative(dirname(fileName), path))
        return `new URL(${JSON.stringify(from)}, import.meta.url).href`
      })
    },
  }
}

/** The modules that load files of the AWS SDK at their first use. */
const sdkLoaders = ['memory/stores/s3/aws-sdk', 'gateway/cloud/sigv4', 'gateway/providers/clouds/event-frames'].map(path => join(dist, `${path}.js`))

/** Returns the plugin that lets the programs find the files of the AWS SDK. */
function sdkImports() {
  return {
    name: 'aws-sdk-imports',
    resolveId: (source, importer) => (source in sdkFiles && importer?.startsWith(dist + sep) ? { id: importOf(source), external: true } : null),
    transform(code, id) {
      if (!sdkLoaders.includes(id)) return null
      return code.replaceAll(/load\('([^']+)'\)/g, (_, name) => `load('${importOf(name)}')`)
    },
  }
}

/** A package whose main file loads its parts in a way that a bundler cannot trace, and the file of it that imports them. */
const alias = { 'jsonc-parser': join(root, 'node_modules', 'jsonc-parser', 'lib', 'esm', 'main.js') }

/** Throws when a bundled file loads a file that is not part of the bundle. */
function refuseUntraced({ fileName, code }) {
  const untraced = /\b(?:__)?require\("(\.[^"]+)"\)/.exec(code)
  if (untraced !== null) throw new Error(`${fileName} loads ${untraced[1]}, which the bundler did not trace`)
}

/** Logs of the bundler that ask for nothing. */
const silent = new Set(['CIRCULAR_DEPENDENCY', 'EVAL', 'PLUGIN_TIMINGS', 'COMMONJS_VARIABLE_IN_ESM'])

const shared = {
  cwd: root,
  platform: 'node',
  external: id => isKept(id) || optional.test(id),
  onLog(level, log, report) {
    if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message)
    if (!silent.has(log.code)) report(level, log)
  },
}
/** Stack traces of a bundle show the names and lines of readable code, so nothing is made shorter. */
const readable = { minify: false, keepNames: true, sourcemap: false, comments: { legal: true, annotation: false, jsdoc: false } }

async function write(options, output) {
  const bundle = await rolldown({ ...shared, ...options })
  try {
    const { output: files } = await bundle.write({ ...readable, ...output })
    // Files in CommonJS load each other that way.
    if (output.format === 'es') for (const file of files) if (file.type === 'chunk') refuseUntraced(file)
    return files.flatMap(file => (file.type === 'chunk' ? file.moduleIds : []))
  } finally {
    await bundle.close()
  }
}

/** Writes the bundled programs into a folder. Resolves with the paths of all modules that are in them. dist/ must be built. */
export async function bundleInto(folder) {
  const [own, sdk] = await Promise.all([
    write(
      { input: Object.fromEntries(programs.map(path => [path, join(dist, `${path}.js`)])), plugins: [moduleAddresses(), sdkImports()], resolve: { alias } },
      { dir: folder, format: 'es', entryFileNames: '[name].js', chunkFileNames: 'chunks/[name]-[hash].js' },
    ),
    write(
      {
        input: Object.fromEntries(Object.entries(sdkFiles).map(([name, file]) => [file, name])),
        // The ES modules of the SDK name their exports, which a bundler can trace.
        resolve: { mainFields: ['module', 'main'], conditionNames: ['module', 'import', 'node', 'default'] },
      },
      { dir: join(folder, 'aws'), format: 'cjs', exports: 'named', entryFileNames: '[name].cjs', chunkFileNames: 'chunks/[name]-[hash].cjs' },
    ),
  ])
  return [...own, ...sdk]
}
