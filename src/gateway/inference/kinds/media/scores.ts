/** Calls that score texts: rankings of documents and moderations. */
import { chatFormat } from '../../../wire/chat/chat-format.ts'
import { performModeration, performRerank } from '../../media/perform-scores.ts'
import type { Kind } from '../kind.ts'
import { moderationRequestOf, rerankRequestOf } from './score-requests.ts'

const common = { hasOutput: false, format: chatFormat, complete: () => null } as const

/** The ranking of documents by a query, charged by the search or by the token. */
export const rerankKind: Kind = {
  ...common,
  usageKind: 'rerank',
  modelKind: 'rerank',
  perform: performRerank,
  parse: ({ bytes }) => rerankRequestOf(bytes),
}

/** The check of texts and pictures. */
export const moderationKind: Kind = {
  ...common,
  usageKind: 'moderation',
  modelKind: 'moderation',
  perform: performModeration,
  parse: ({ bytes }) => moderationRequestOf(bytes),
}
