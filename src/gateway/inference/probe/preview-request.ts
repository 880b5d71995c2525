/** Finds the kind of call that a body is for, and the request to routing. The preview of a call uses the parsers of the call itself. */
import { fail } from '../../../platform/errors.ts'
import type { CatalogSnapshot, Model } from '../../catalog/model.ts'
import type { Attempt, ResolveRequest, ServedKind } from '../../routing/plan.ts'
import { modelOf } from '../../wire/chat/chat.ts'
import { parseRouterFields } from '../../wire/chat/router-fields.ts'
import { accepting } from '../kinds/accepting.ts'
import { chatKind } from '../kinds/chat.ts'
import { embeddingsKind } from '../kinds/embeddings.ts'
import type { Kind } from '../kinds/kind.ts'
import { speechKind } from '../kinds/media/audio.ts'
import { imagesRequest } from '../kinds/media/images-request.ts'
import { moderationKind, rerankKind } from '../kinds/media/scores.ts'
import { messagesKind } from '../kinds/messages.ts'
import { type ParsedRequest, routedTokensOf } from '../kinds/request.ts'
import { responsesKind } from '../kinds/responses.ts'

type Body = Readonly<Record<string, unknown>>

/** The request that the call would make to routing, and its check of the first attempt after that. */
export interface PreviewRequest {
  readonly request: Omit<ResolveRequest, 'org' | 'policies'>
  checkFor(first: Attempt): void
}

type Shape = 'chat' | 'messages' | 'responses' | 'embeddings' | 'image' | 'edit' | 'speech' | 'transcription' | 'rerank' | 'moderation'

/**
 * Reads a body as the call that it looks like.
 *
 * A body with `messages` is a messages call when it has anything that only the messages API has: `system`, its content blocks, or tools with
 * `input_schema`. Any other body with `messages` is a chat call. A body with an image model or `prompt` is an image call, and an edit when it
 * has `image`. A body with `query` and `documents` is a ranking. For other bodies the kind of the model decides; `input` is for embeddings, speech or responses.
 *
 * Missing parts that the call needs (messages, input, prompt, recording) count as empty. Throws the errors of the call for this body.
 */
export function previewRequestOf(body: Body, catalog: CatalogSnapshot, serviceId: string): PreviewRequest {
  switch (shapeOf(body, catalog.models.get(String(body['model'])))) {
    case 'messages':
      return parsedBy(messagesKind, { max_tokens: 1, ...body })
    case 'responses':
      return parsedBy(responsesKind, body)
    case 'embeddings':
      return parsedBy(embeddingsKind, { ...body, input: body['input'] ?? '' })
    case 'speech':
      return parsedBy(speechKind, { voice: 'alloy', ...body, input: body['input'] ?? ' ' })
    case 'rerank':
      return parsedBy(rerankKind, { ...body, query: body['query'] ?? '.', documents: body['documents'] ?? [''] })
    case 'moderation':
      return parsedBy(moderationKind, { ...body, input: body['input'] ?? '' })
    case 'image':
      return of('image', imagesRequest(bytesOf({ ...body, prompt: body['prompt'] ?? ' ' }), serviceId))
    case 'edit':
      return named({ model: 'gpt-image-1', ...body }, 'image', editsOnly)
    case 'transcription':
      return named(body, 'transcription', accepting('transcription'))
    case 'chat':
      return parsedBy(chatKind, body['messages'] === undefined ? { ...body, messages: [{ role: 'user', content: '' }] } : body)
  }
}

function shapeOf(body: Body, model: Model | undefined): Shape {
  const { messages, input, prompt, image } = body
  if (messages !== undefined) return isMessagesApi(body) ? 'messages' : 'chat'
  if (model?.kind === 'transcription' || body['file'] !== undefined) return 'transcription'
  if (model?.kind === 'speech' || (input !== undefined && body['voice'] !== undefined)) return 'speech'
  if (model?.kind === 'rerank' || (body['query'] !== undefined && body['documents'] !== undefined)) return 'rerank'
  if (model?.kind === 'moderation') return 'moderation'
  if (model?.kind === 'embedding') return 'embeddings'
  if (model?.kind === 'image' || prompt !== undefined) return image === undefined ? 'image' : 'edit'
  return input === undefined ? 'chat' : 'responses'
}

/** The types of content blocks that the chat API does not have. */
const messagesBlocks: readonly unknown[] = ['image', 'document', 'tool_use', 'tool_result', 'thinking', 'redacted_thinking']

function isMessagesApi(body: Body): boolean {
  if (body['system'] !== undefined || body['stop_sequences'] !== undefined || body['thinking'] !== undefined) return true
  if (listOf(body['tools']).some(tool => objectOf(tool)['input_schema'] !== undefined)) return true
  return listOf(body['messages']).some(message => listOf(objectOf(message)['content']).some(part => messagesBlocks.includes(objectOf(part)['type'])))
}

const parsedBy = (kind: Kind, body: Body): PreviewRequest => of(kind.modelKind, kind.parse({ bytes: bytesOf(body), headers: {}, query: '' }))

function of(kind: ServedKind, parsed: ParsedRequest): PreviewRequest {
  const { modelId, fields, needs } = parsed
  const promptTokens = routedTokensOf(parsed)
  return {
    request: { modelId, kind, fields, promptTokens, needs, promptText: () => parsed.promptText(), accepts: model => parsed.accepts?.(model) },
    checkFor: first => parsed.checkFor?.(first),
  }
}

/** Routing needs only the model and the router fields of a form. */
function named(body: Body, kind: ServedKind, accepts: (model: Model) => void): PreviewRequest {
  const { fields, stripped } = parseRouterFields({ ...body })
  return { request: { modelId: modelOf(stripped), kind, fields, promptTokens: 0, accepts }, checkFor: () => {} }
}

function editsOnly(model: Model): void {
  if (!model.edits) throw fail('unsupported_operation', { message: `"${model.id}" does not edit images. gpt-image-1 and gpt-image-1-mini do.` })
}

const bytesOf = (body: Body): Buffer => Buffer.from(JSON.stringify(body))
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const objectOf = (value: unknown): Body => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Body) : {})
