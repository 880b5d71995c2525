/** Shows shared memory as resources: an object with its author, or a folder with the keys below it. */
import { z } from 'zod'
import type { McpRows } from '../mcp-rows.ts'
import type { RowReader } from '../row-reader.ts'
import { type ResourceContents, SurfaceError } from '../surface.ts'
import { fenced, keyText, namesNotice, untrustedNotice } from '../tools/memory/text/tool-memory-marking.ts'
import { boundedPage } from '../tools/memory/text/tool-memory-parts.ts'
import { provenanceOf, provenanceText } from '../tools/memory/text/tool-memory-provenance.ts'
import { sliceOf } from '../tools/memory/text/tool-memory-slice.ts'
import { bytesOf, textOf } from '../tools/memory/tool-memory-read.ts'
import { jsonOf, plainJson } from '../tools/toolbox/tool.ts'
import type { MemoryPlace } from './memory-uri.ts'

export interface MemoryReading {
  readonly rows: McpRows
  /** Maximum size of one object over MCP in bytes (setting MEMORY_MCP_MAX_BYTES). */
  readonly objectMaxBytes: number
}

/** Reads the place that a `memory://` URI names. Throws SurfaceError. */
export function readMemory(uri: string, place: MemoryPlace, reader: RowReader, reading: MemoryReading, signal: AbortSignal): Promise<ResourceContents> {
  return place.kind === 'object' ? readObject(uri, place.key, reader, reading, signal) : readFolder(uri, place.prefix, reader, reading, signal)
}

/** Reads one object. Text looks the same as in memory_read: marked as written by others, with author and time. Other bytes are returned unchanged. */
async function readObject(
  uri: string,
  key: string,
  reader: RowReader,
  { rows, objectMaxBytes }: MemoryReading,
  signal: AbortSignal,
): Promise<ResourceContents> {
  const { bytes, headers } = bytesOf(await reader.value(rows.memory.read, { query: { key } }, signal, uri))
  const provenance = provenanceOf(headers)
  const etag = headers['etag'] ?? null
  const meta = {
    'brigade/untrusted': true,
    'brigade/key': key,
    'brigade/provenance': provenance,
    'brigade/etag': etag,
    'brigade/sha256': headers['x-br-meta-sha256'] ?? null,
    'brigade/size': bytes.byteLength,
  }
  const text = textOf(bytes)
  if (text === null) {
    if (bytes.byteLength > objectMaxBytes) throw tooLarge(bytes.byteLength, objectMaxBytes)
    return { uri, mimeType: 'application/octet-stream', blob: Buffer.from(bytes).toString('base64'), _meta: { ...meta, 'brigade/truncated': false } }
  }
  const slice = await sliceOf(text, { offsetLine: 0, offsetChar: 0, limitLines: undefined, bytesMax: objectMaxBytes })
  const head = `${keyText(key)} · ${bytes.byteLength} bytes · etag ${etag ?? 'unknown'} · ${provenanceText(provenance)}`
  const more =
    slice.next === null
      ? []
      : [`There is more: read on with the tool memory_read, offset_line ${slice.next.offset_line}, offset_char ${slice.next.offset_char}.`]
  return {
    uri,
    mimeType: 'text/plain',
    text: [head, untrustedNotice, fenced(reader.call.requestId, slice.text), ...more].join('\n').toWellFormed(),
    _meta: { ...meta, 'brigade/truncated': slice.next !== null },
  }
}

function tooLarge(sizeBytes: number, maxBytes: number): SurfaceError {
  const message = `Over MCP a memory object has at most ${maxBytes} bytes; this one has ${sizeBytes} and is no text, so no part of it is shown. Programs read it with GET /v1/me/memory/o.`
  return new SurfaceError('badParams', `payload_too_large: ${message}`, { code: 'payload_too_large', message, status: 413 })
}

const listPage = z.looseObject({ keys: z.array(z.looseObject({ key: z.string() })), next_cursor: z.string().nullable() })
const folderKeysMax = 500

async function readFolder(uri: string, prefix: string, reader: RowReader, { rows }: MemoryReading, signal: AbortSignal): Promise<ResourceContents> {
  const page = await boundedPage(
    folderKeysMax,
    async limit => listPage.parse(plainJson(jsonOf(await reader.value(rows.memory.list, { query: { prefix, limit: String(limit) } }, signal, uri)))),
    ({ keys }) => keys,
  )
  const next = page.next_cursor === null ? {} : { next: 'There are more: memory_list with this prefix and next_cursor as cursor goes on.' }
  return {
    uri,
    mimeType: 'application/json',
    text: JSON.stringify({ prefix, notice: namesNotice, ...page, ...next }),
    _meta: { 'brigade/untrusted': true },
  }
}
