/** Reads the cases in test/wire/<format>/<case>/. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

const folder = import.meta.dirname
const formats = ['chat', 'messages', 'responses', 'gemini'] as const

const upstreamReply = z
  .strictObject({
    dialect: z.enum(['openai', 'anthropic', 'gemini', 'openai-responses']),
    /** The OpenAI test server that the client's model uses. The default is alpha. */
    server: z.enum(['alpha', 'beta', 'indus']).optional(),
    status: z.int().optional(),
    headers: z.record(z.string(), z.string()).optional(),
    /** JSON, or a string that is sent as it is. */
    body: z.unknown().optional(),
    /** The name of a file next to case.json with the bytes of the stream. */
    stream: z.string().optional(),
    /** The connection breaks after the stream. */
    breaks: z.literal(true).optional(),
  })
  .refine(({ body, stream }) => (body === undefined) !== (stream === undefined), 'an upstream has a body or a stream')

const goldenCase = z.strictObject({
  cases: z.array(z.int().min(1).max(89)),
  title: z.string().min(1),
  client: z
    .strictObject({
      path: z.string().regex(/^\/v1(beta)?\//),
      headers: z.record(z.string(), z.string()).optional(),
      /** JSON, or a string that is sent as it is. */
      body: z.unknown(),
    })
    .optional(),
  /** One reply, or one reply for each attempt in order. Left out: the gateway must not call a provider. */
  upstream: z.union([upstreamReply, z.array(upstreamReply)]).optional(),
  /** The path of a test that covers the case, when one exchange cannot (time, broken sockets, several calls). */
  shown_by: z.string().optional(),
})

export type UpstreamReply = z.output<typeof upstreamReply>

/** One case of the folder. */
export interface GoldenCase {
  /** `messages/31-finish-reasons`. */
  readonly name: string
  readonly folder: string
  readonly cases: readonly number[]
  readonly title: string
  readonly client: { readonly path: string; readonly headers: Readonly<Record<string, string>>; readonly body: string } | null
  readonly upstreams: readonly UpstreamReply[]
  readonly shownBy: string | null
  /** The whole text of the case. An id in this text was not made by the gateway. */
  readonly ownText: string
}

/** Returns every case, by format and name. Throws an error that names the file when a case does not have the form of README.md. */
export function goldenCases(): readonly GoldenCase[] {
  return formats.flatMap(format => {
    if (!existsSync(join(folder, format))) return []
    const names = readdirSync(join(folder, format), { withFileTypes: true }).filter(entry => entry.isDirectory())
    return names.map(entry => readCase(`${format}/${entry.name}`)).sort((a, b) => (a.cases[0] ?? 0) - (b.cases[0] ?? 0) || a.name.localeCompare(b.name))
  })
}

function readCase(name: string): GoldenCase {
  const at = join(folder, name)
  const text = readFileSync(join(at, 'case.json'), 'utf8')
  const parsed = goldenCase.safeParse(JSON.parse(text))
  if (!parsed.success) throw new Error(`test/wire/${name}/case.json: ${z.prettifyError(parsed.error)}`)
  const { cases, title, client, upstream = [], shown_by: shownBy = null } = parsed.data
  if ((client === undefined) === (shownBy === null)) throw new Error(`test/wire/${name}/case.json needs either client or shown_by`)
  const upstreams = Array.isArray(upstream) ? upstream : [upstream]
  const streams = upstreams.map(({ stream }) => (stream === undefined ? '' : readFileSync(join(at, stream), 'utf8')))
  return {
    name,
    folder: at,
    cases,
    title,
    client:
      client === undefined
        ? null
        : { path: client.path, headers: client.headers ?? {}, body: typeof client.body === 'string' ? client.body : JSON.stringify(client.body) },
    upstreams,
    shownBy,
    ownText: [text, ...streams].join('\n'),
  }
}

/** Returns the bytes of a reply's stream, divided into events or into single bytes. */
export function streamOf(golden: GoldenCase, stream: string, cut: 'events' | 'bytes'): readonly Uint8Array[] {
  const bytes = readFileSync(join(golden.folder, stream))
  if (cut === 'bytes') return Array.from(bytes, byte => Uint8Array.of(byte))
  return bytes
    .toString('latin1')
    .split(/(?<=\n\n|\r\n\r\n|\r\r)/)
    .map(event => Buffer.from(event, 'latin1'))
}
