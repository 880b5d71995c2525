import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { Clock } from '../../../platform/clock.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import type { BearerPrincipal } from '../../../platform/security/principal.ts'
import type { Sealer } from '../../../platform/security/secrets.ts'
import type { CallableTool } from '../registry/callable-tool.ts'
import type { SentAnswers, ServerQuestions } from '../upstream/tool-call.ts'

/** What the client of a call can be asked, and what it answered. */
export interface AskedClient {
  /** The modes of elicitation that the client declares. */
  readonly modes: { readonly form: boolean; readonly url: boolean }
  readonly answers: Readonly<Record<string, unknown>> | undefined
  /** The state that came with the questions. The client may have changed it. */
  readonly state: string | undefined
}

/** Questions of a server to the client of a call, in place of a result. */
export interface ToolQuestion {
  readonly questions: Readonly<Record<string, { readonly kind: 'elicitation'; readonly params: Readonly<Record<string, unknown>> }>>
  readonly state: string
}

/** The call that a question belongs to. A state is valid for this call only. */
export interface QuestionOwner {
  readonly principal: BearerPrincipal
  readonly tool: CallableTool
  readonly args: Readonly<Record<string, unknown>>
}

/** Time in which a client answers. */
const lifeMs = 10 * 60_000
const questionsMax = 8
const messageMaxChars = 2000
const schemaMaxBytes = 16 * 1024
const stateMaxBytes = 16 * 1024
const answersMaxBytes = 64 * 1024
/** States that were answered and are still in their time. */
const usedMax = 10_000

const form = z.object({ message: z.string().max(messageMaxChars), requestedSchema: z.record(z.string(), z.unknown()), mode: z.literal('form').optional() })
const link = z.object({
  mode: z.literal('url'),
  message: z.string().max(messageMaxChars),
  url: z.string().max(2048),
  elicitationId: z.string().max(256).optional(),
})
const answer = z.object({ action: z.enum(['accept', 'decline', 'cancel']), content: z.record(z.string(), z.unknown()).optional() })
const sealedState = z.object({ id: z.string(), untilMs: z.number(), names: z.array(z.string()), state: z.string().nullable() })

/**
 * Carries questions of a modern server to a modern client, and the answers back. The state of the server is sealed for the principal, the tool, the approved hash
 * and the arguments of the call, and is valid for 10 minutes and one answer. Decision 0840 gives the reasons.
 */
export class ToolQuestions {
  readonly #sealer: Sealer
  readonly #clock: Clock
  readonly #newId: () => string
  readonly #used = new LRUCache<string, true>({ max: usedMax })

  constructor(sealer: Sealer, clock: Clock, newId: () => string) {
    this.#sealer = sealer
    this.#clock = clock
    this.#newId = newId
  }

  /** Returns what the server gets of the client. Throws `bad_request` for a state that is not of this call, was used, or is too old. */
  answersFor(asked: AskedClient, owner: QuestionOwner): SentAnswers {
    const { modes, answers, state } = asked
    if (state === undefined && answers === undefined) return { modes }
    if (state === undefined) throw notOurs()
    const { id, untilMs, names, state: ofServer } = this.#opened(state, owner)
    // A server may give a state without a question. The client then repeats the call without answers.
    if (this.#clock.nowMs() >= untilMs || this.#used.has(id) || (answers === undefined && names.length > 0)) throw notOurs()
    const given = Object.fromEntries(names.map(name => [name, answer.safeParse(answers?.[name]).data ?? null]))
    if (Object.values(given).includes(null) || Buffer.byteLength(JSON.stringify(given)) > answersMaxBytes)
      throw fail('bad_request', { message: `Every question of this tool needs an answer of the protocol, with at most ${answersMaxBytes} bytes in all.` })
    this.#used.set(id, true)
    return { modes, answers: given, ...(ofServer === null ? {} : { state: ofServer }) }
  }

  /** Returns the questions of a server for the client. Throws `tool_server_failed` for questions that may not pass. */
  passedOn({ requests, state: ofServer }: ServerQuestions, { modes }: AskedClient, owner: QuestionOwner): ToolQuestion {
    const entries = Object.entries(requests)
    const state = ofServer ?? null
    if (entries.length > questionsMax || (state !== null && Buffer.byteLength(state) > stateMaxBytes)) throw mayNotPass()
    const questions = Object.fromEntries(
      entries.map(([name, request]) => [name, { kind: 'elicitation' as const, params: paramsOf(request, modes, owner.tool.slug) }]),
    )
    const untilMs = this.#clock.nowMs() + lifeMs
    const sealed = this.#sealer.seal(JSON.stringify({ id: this.#newId(), untilMs, names: entries.map(([name]) => name), state }), ownerText(owner))
    return { questions, state: sealed }
  }

  #opened(state: string, owner: QuestionOwner): z.output<typeof sealedState> {
    try {
      return sealedState.parse(JSON.parse(this.#sealer.open(state, ownerText(owner))))
    } catch (cause) {
      throw notOurs(cause)
    }
  }
}

function paramsOf(request: ServerQuestions['requests'][string], modes: AskedClient['modes'], slug: string): Readonly<Record<string, unknown>> {
  if (request.method !== 'elicitation/create') throw mayNotPass()
  const asLink = link.safeParse(request.params)
  if (asLink.success) {
    const { url, message, ...rest } = asLink.data
    if (!modes.url || !URL.canParse(url) || new URL(url).protocol !== 'https:') throw mayNotPass()
    return { ...rest, url, message: `The MCP server ${slug} asks you to open ${new URL(url).host}: ${message}` }
  }
  const asForm = form.safeParse(request.params)
  if (!asForm.success || !modes.form || Buffer.byteLength(JSON.stringify(asForm.data.requestedSchema)) > schemaMaxBytes) throw mayNotPass()
  return { ...asForm.data, message: `The MCP server ${slug} asks: ${asForm.data.message}` }
}

/** Returns the text that a sealed state is bound to. */
function ownerText({ principal, tool, args }: QuestionOwner): string {
  const caller = principal.kind === 'agent' ? `agent:${principal.agentId}` : `key:${principal.keyId}`
  const digest = createHash('sha256')
    .update(canonicalize(args) ?? '')
    .digest('hex')
  return JSON.stringify(['tool_question', principal.orgId, caller, tool.toolId, tool.hash, digest])
}

const notOurs = (cause?: unknown): GatewayError =>
  fail('bad_request', {
    cause,
    extra: { reason: 'request_state' },
    message: 'The request state is not one of this call, was answered before, or is older than 10 minutes. Make the call again without it.',
  })

const mayNotPass = (): GatewayError =>
  fail('tool_server_failed', { message: 'The server of this tool asked its caller something that may not pass. The call was sent and counts.' })
