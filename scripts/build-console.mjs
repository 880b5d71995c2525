/**
 * Builds the web console of src/console with Vite: `node scripts/build-console.mjs [folder]`, by default to dist/console. Every file that a browser compresses
 * well gets a `.br` and a `.gz` beside it, so that the gateway compresses nothing while it runs.
 */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { root, runAsMain } from './paths.mjs'

const source = join(root, 'src', 'console')
const compressible = /\.(html|js|css|svg|json|webmanifest)$/
/** The best quality, 11, takes twice the processor time and saves 2 percent. */
const brotliQuality = 10
/** A compressed copy is kept only if it saves at least this share. */
const worthShare = 0.9

/** Notes of the bundler that ask for nothing: directives for servers that render React, and that a busy machine was slow. */
const silent = new Set(['MODULE_LEVEL_DIRECTIVE', 'PLUGIN_TIMINGS'])

/** The browsers that have everything that the console uses: `light-dark()`, popovers, container queries and CSS nesting. */
const browsers = ['chrome125', 'firefox128', 'safari17.5']

/**
 * Puts a small script before the others. It reads the theme that the person chose, so that the page does not flash in the other one. The policy of the
 * console allows no inline script, so it is a file.
 */
function themeFirst() {
  const text = readFileSync(join(source, 'app', 'theme-boot.js'), 'utf8').replace(/^\/\*[\s\S]*?\*\/\n/, '')
  let reference
  return {
    name: 'theme-first',
    buildStart() {
      reference = this.emitFile({ type: 'asset', name: 'theme.js', source: text })
    },
    transformIndexHtml: {
      order: 'post',
      handler: (_html, { bundle }) => {
        const fileName = Object.values(bundle ?? {}).find(file => file.names?.includes('theme.js'))?.fileName
        if (fileName === undefined) throw new Error(`the theme script ${reference} is not part of the build`)
        return [{ tag: 'script', attrs: { src: `/console/${fileName}` }, injectTo: 'head' }]
      },
    },
  }
}

/**
 * The chunks that several pages share. Without them a page asks for 20 to 30 small files, and a browser that has none of them yet asks for six at a time.
 * The shell and the libraries are what index.html loads; what two pages share of their own parts is one more file, and so is what the pages of models share.
 */
const chunkGroups = [
  { name: 'libraries', test: /node_modules\/(react|react-dom|scheduler|use-sync-external-store|@tanstack)\//, priority: 3 },
  { name: 'shell', test: /src\/console\/(app|api|text|ui\/(?!markdown|compare))/, priority: 2 },
  { name: 'models', test: /src\/console\/pages\/(steps|routing|models|providers|servers|collections)\//, minShareCount: 2, priority: 2 },
  { name: 'shared', test: /src\/console\/pages\//, minShareCount: 2, priority: 1 },
]

/** Builds the console into `outDir`, which it replaces. Throws when the sources do not compile. */
export async function buildConsole(outDir) {
  const before = process.env.NODE_ENV
  // With another value, which tests have, React and the bundler would make a larger build for development.
  process.env.NODE_ENV = 'production'
  try {
    const { build } = await import('vite')
    await build(settingsFor(outDir))
  } finally {
    if (before === undefined) delete process.env.NODE_ENV
    else process.env.NODE_ENV = before
  }
  compressBelow(outDir)
}

/** The settings of Vite. */
const settingsFor = outDir => ({
  configFile: false,
  root: source,
  mode: 'production',
  base: '/console/',
  logLevel: 'warn',
  publicDir: false,
  plugins: [themeFirst()],
  css: { transformer: 'lightningcss' },
  build: {
    outDir,
    emptyOutDir: true,
    target: browsers,
    assetsInlineLimit: 0,
    cssMinify: 'lightningcss',
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: { codeSplitting: { groups: chunkGroups } },
      onLog: (level, log, report) => silent.has(log.code) || report(level, log),
    },
    sourcemap: false,
  },
})

function compressBelow(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile() || !compressible.test(entry.name)) continue
    const path = join(entry.parentPath ?? entry.path, entry.name)
    const bytes = readFileSync(path)
    const quality = { [constants.BROTLI_PARAM_QUALITY]: brotliQuality, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
    for (const [ending, packed] of [
      ['br', brotliCompressSync(bytes, { params: quality })],
      ['gz', gzipSync(bytes, { level: 9 })],
    ])
      if (packed.length < bytes.length * worthShare) writeFileSync(`${path}.${ending}`, packed)
  }
}

/** The most that a browser loads, in bytes of brotli, and the most processor time of a build. The editor is loaded when a person edits a text. */
export const bounds = { shellBytes: 150 * 1024, pageBytes: 30 * 1024, editorBytes: 80 * 1024, cpuMs: 3000 }

/** Returns the bound of a chunk that the shell loads later. */
export const boundOf = name => (name.startsWith('code-editor-') ? bounds.editorBytes : bounds.pageBytes)

/**
 * Returns the size of the shell and of each page of a built console, in bytes as a browser receives them. The shell is what index.html loads. A page is a
 * chunk that the shell loads later.
 */
export function consoleSizes(folder) {
  const sizeOf = name => statSync([`${name}.br`, name].map(each => join(folder, each)).find(path => statSync(path, { throwIfNoEntry: false }))).size
  const html = readFileSync(join(folder, 'index.html'), 'utf8')
  const names = readdirSync(join(folder, 'assets')).filter(name => /\.(js|css)$/.test(name))
  const isShell = name => html.includes(`/console/assets/${name}`)
  const shell = ['index.html', ...names.filter(isShell).map(name => `assets/${name}`)]
  return {
    shellBytes: shell.reduce((sum, name) => sum + sizeOf(name), 0),
    pages: names.filter(name => !isShell(name)).map(name => ({ name, bytes: sizeOf(`assets/${name}`) })),
  }
}

/** Returns one line of text for each bound that a built console exceeds. */
export function tooHeavy(folder) {
  const { shellBytes, pages } = consoleSizes(folder)
  const kib = bytes => `${(bytes / 1024).toFixed(1)} KiB of brotli`
  const shell = shellBytes > bounds.shellBytes ? [`the shell of the console: ${kib(shellBytes)}; ${kib(bounds.shellBytes)} is the limit`] : []
  return [
    ...shell,
    ...pages.filter(page => page.bytes > boundOf(page.name)).map(page => `${page.name}: ${kib(page.bytes)}; ${kib(boundOf(page.name))} is the limit`),
  ]
}

runAsMain(import.meta.url, async () => {
  const words = process.argv.slice(2).filter(word => !word.startsWith('--'))
  const folder = resolve(words[0] ?? join(root, 'dist', 'console'))
  try {
    await buildConsole(folder)
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
    return
  }
  const heavy = tooHeavy(folder)
  for (const line of heavy) console.error(line)
  if (process.argv.includes('--report')) {
    const { user, system } = process.cpuUsage()
    console.log(JSON.stringify({ cpuMs: Math.round((user + system) / 1000), ...consoleSizes(folder) }))
  }
})
