import type { Dialect } from './dialect.ts'
import { anthropicDialect } from './dialects/anthropic/anthropic.ts'
import { geminiDialect } from './dialects/gemini/gemini.ts'
import { openAiDialect } from './dialects/openai/openai.ts'
import { openAiResponsesDialect } from './dialects/openai-responses/openai-responses.ts'
import type { DialectId } from './provider.ts'

/** Dialects by id. A row of the catalog may name only these; `dialectOf` throws at start for any other. */
const dialects: Readonly<Partial<Record<DialectId, Dialect>>> = {
  openai: openAiDialect,
  'openai-responses': openAiResponsesDialect,
  anthropic: anthropicDialect,
  gemini: geminiDialect,
}

/** True when this build speaks the dialect. */
export function hasDialect(id: DialectId): boolean {
  return dialects[id] !== undefined
}

/** The dialect of that id. Throws when this build does not speak it, which catalog validation rules out before any call. */
export function dialectOf(id: DialectId): Dialect {
  const dialect = dialects[id]
  if (dialect === undefined) throw new Error(`this build does not speak the dialect ${id}`)
  return dialect
}

/** Whether providers of that dialect have calls of this kind. Embeddings and audio are asked for in OpenAI's formats alone; images have adapters of their own. */
export function speaksKind(id: DialectId, kind: 'chat' | 'embedding' | 'image' | 'transcription' | 'speech'): boolean {
  return kind === 'chat' || kind === 'image' || id === 'openai'
}
