import type { Dialect } from './dialect.ts'
import { anthropicDialect } from './dialects/anthropic/anthropic.ts'
import { geminiDialect } from './dialects/gemini/gemini.ts'
import { openAiDialect } from './dialects/openai/openai.ts'
import { openAiResponsesDialect } from './dialects/openai-responses/openai-responses.ts'
import type { DialectId } from './provider.ts'

/** The dialects by id. A catalog row may name only these; for any other `dialectOf` throws at start. */
const dialects: Readonly<Partial<Record<DialectId, Dialect>>> = {
  openai: openAiDialect,
  'openai-responses': openAiResponsesDialect,
  anthropic: anthropicDialect,
  gemini: geminiDialect,
}

/** True if this build has the dialect. */
export function hasDialect(id: DialectId): boolean {
  return dialects[id] !== undefined
}

/** Returns the dialect of that id. Throws if this build does not have it. Catalog validation rules that out before any call. */
export function dialectOf(id: DialectId): Dialect {
  const dialect = dialects[id]
  if (dialect === undefined) throw new Error(`this build does not speak the dialect ${id}`)
  return dialect
}

/** Whether providers of that dialect have calls of this kind. Embeddings and audio are requested only in OpenAI's formats. Images have their own adapters. */
export function speaksKind(id: DialectId, kind: 'chat' | 'embedding' | 'image' | 'transcription' | 'speech'): boolean {
  return kind === 'chat' || kind === 'image' || id === 'openai'
}
