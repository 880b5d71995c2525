import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The encodings that the build makes, in the order of preference. The build writes `name.br` and `name.gz` beside `name`. */
const encodings = [
  { name: 'br', ending: '.br' },
  { name: 'gzip', ending: '.gz' },
] as const
type EncodingName = (typeof encodings)[number]['name']

/** One file in one encoding. */
export interface FileVariant {
  readonly bytes: Buffer
  /** A strong ETag with its quotes. Each encoding has its own. */
  readonly etag: string
  /** Null for the file as it is. */
  readonly encoding: EncodingName | null
}

/** A file of the console in all its encodings. */
export interface ConsoleFile {
  readonly contentType: string
  /** The best encoding first, and the file as it is last. */
  readonly variants: readonly [...FileVariant[], FileVariant]
}

/** The built console in memory: the page, and the assets by name. A name of an asset contains a digest of its content. */
export interface ConsoleFiles {
  readonly page: ConsoleFile
  readonly assets: ReadonlyMap<string, ConsoleFile>
}

const contentTypes: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
}

/** The folder into which scripts/build.mjs builds the console. It is the same for the compiled gateway and for one that runs from the source. */
export const builtConsole = fileURLToPath(new URL('../../../../dist/console/', import.meta.url))

/** Reads a built console into memory. Returns null when the folder has none. The whole console has less than two megabytes. */
export function readConsole(folder: string): ConsoleFiles | null {
  if (!existsSync(join(folder, 'index.html'))) return null
  const assets = new Map<string, ConsoleFile>()
  for (const name of readdirSync(join(folder, 'assets'))) {
    const file = readFile(join(folder, 'assets', name))
    if (file !== null) assets.set(name, file)
  }
  const page = readFile(join(folder, 'index.html'))
  return page === null ? null : { page, assets }
}

/** Returns the file with its encodings. Returns null for a file of unknown type, which a compressed copy is, too. */
function readFile(path: string): ConsoleFile | null {
  const contentType = contentTypes[path.slice(path.lastIndexOf('.') + 1)]
  if (contentType === undefined) return null
  const plain = variantOf(readFileSync(path), null)
  const packed = encodings.flatMap(({ name, ending }) => (existsSync(path + ending) ? [variantOf(readFileSync(path + ending), name)] : []))
  return { contentType, variants: [...packed, plain] }
}

function variantOf(bytes: Buffer, encoding: EncodingName | null): FileVariant {
  const digest = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
  return { bytes, encoding, etag: `"${digest}"` }
}

/** Returns the best variant that the client accepts. A client that names no encoding gets the file as it is. */
export function variantFor({ variants }: ConsoleFile, acceptEncoding: string | undefined): FileVariant {
  const accepted = acceptedEncodings(acceptEncoding)
  const found = variants.find(({ encoding }) => encoding === null || accepted.has(encoding))
  return found ?? (variants[variants.length - 1] as FileVariant)
}

/**
 * Returns the names in an Accept-Encoding header that have a weight above 0. Anybody may send this header, so each expression here is anchored: a search for
 * white space before a mark takes time in proportion to the square of a long run of it.
 */
function acceptedEncodings(header: string | undefined): ReadonlySet<string> {
  return new Set(
    (header ?? '').split(',').flatMap(part => {
      const [name = '', ...parameters] = part.split(';').map(piece => piece.trim().toLowerCase())
      return parameters.some(parameter => /^q=0(\.0*)?$/.test(parameter)) ? [] : [name]
    }),
  )
}
