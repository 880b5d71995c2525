import type { Dialect } from './dialect.ts'
import { anthropicDialect } from './dialects/anthropic/anthropic.ts'
import { geminiDialect } from './dialects/gemini/gemini.ts'
import { openAiDialect } from './dialects/openai/openai.ts'
import { openAiResponsesDialect } from './dialects/openai-responses/openai-responses.ts'
import type { DialectId } from './provider.ts'

/** The dialects by id. Catalog rows may name only these. For any other id, `dialectOf` throws at start. */
const dialects: Readonly<Partial<Record<DialectId, Dialect>>> = {
  openai: openAiDialect,
  'openai-responses': openAiResponsesDialect,
  anthropic: anthropicDialect,
  gemini: geminiDialect,
}

/** Returns whether this build has the dialect. */
export function hasDialect(id: DialectId): boolean {
  return dialects[id] !== undefined
}

/** Returns the dialect of that id. Throws if this build does not have the dialect. The validation of the catalog prevents that before any call. */
export function dialectOf(id: DialectId): Dialect {
  const dialect = dialects[id]
  if (dialect === undefined) throw new Error(`this build does not speak the dialect ${id}`)
  return dialect
}

/**
 * Returns whether providers of that dialect offer calls of this kind. Embeddings, audio, rankings and moderations exist only beside OpenAI's format.
 * Images have their own adapters.
 */
export function speaksKind(id: DialectId, kind: 'chat' | 'embedding' | 'image' | 'transcription' | 'speech' | 'rerank' | 'moderation'): boolean {
  return kind === 'chat' || kind === 'image' || id === 'openai'
}
