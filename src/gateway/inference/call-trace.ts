/**
 * The trace of one call, by OpenTelemetry's conventions for generative AI: one span for the call and one for each dial. A trace contains no text
 * of prompts or replies. It contains a name that a caller chose only when routing knows the name.
 */
import type { Clock } from '../../platform/clock.ts'
import { GatewayError } from '../../platform/errors.ts'
import type { Attributes, Recorder, Span, Telemetry, TracePlace } from '../../platform/observe/tracing.ts'
import type { Attempt } from '../routing/plan.ts'
import type { UsageEvent, UsageKind } from '../usage/events/record.ts'

/** Begins the traces of calls. */
export interface CallTraces {
  begin(kind: UsageKind, place: TracePlace, requestId: string): CallTrace
}

/** The operation names of the conventions. The conventions name chat and embeddings, and have no name for rankings and moderations. Calls that make or read media use `generate_content`. */
const operations: Readonly<Record<UsageKind, { readonly name: string; readonly outputType?: string }>> = {
  chat: { name: 'chat' },
  messages: { name: 'chat' },
  responses: { name: 'chat' },
  gemini: { name: 'chat' },
  embeddings: { name: 'embeddings' },
  image: { name: 'generate_content', outputType: 'image' },
  transcription: { name: 'generate_content', outputType: 'text' },
  speech: { name: 'generate_content', outputType: 'speech' },
  rerank: { name: 'rerank' },
  moderation: { name: 'moderation' },
  // Calls of tools and batches do not pass through the pipeline.
  tool: { name: 'execute_tool' },
  batch: { name: 'batch' },
}

/** Names of the conventions for providers that have another id in the catalog. */
const wellKnown: Readonly<Record<string, string>> = {
  google: 'gcp.gemini',
  mistral: 'mistral_ai',
  moonshot: 'moonshot_ai',
  xai: 'x_ai',
}

const providerName = (id: string): string => wellKnown[id] ?? id

/** The bucket bounds of the conventions, in seconds and tokens. */
const durationBounds = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const serverBounds = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const firstTokenBounds = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
const tokenBounds = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864]

interface Instruments {
  readonly telemetry: Telemetry
  readonly clock: Clock
  /** Returns the model as a label: the id in the catalog, or one word for all other models. */
  readonly modelLabel: (id: string) => string
  readonly providerLabel: (id: string) => string
  readonly clientDuration: Recorder
  readonly serverDuration: Recorder
  readonly firstToken: Recorder
  readonly tokens: Recorder
}

/**
 * Returns the traces of calls for a collector. `modelLabel` and `providerLabel` bound the labels of the histograms. The spans name the model and
 * the provider that were really called.
 */
export function callTraces({ telemetry, ...given }: Pick<Instruments, 'telemetry' | 'clock' | 'modelLabel' | 'providerLabel'>): CallTraces {
  const instruments: Instruments = {
    telemetry,
    ...given,
    clientDuration: telemetry.histogram('gen_ai.client.operation.duration', 's', 'How long a dial of a provider took.', durationBounds),
    serverDuration: telemetry.histogram('gen_ai.server.request.duration', 's', 'How long a call took, to its last byte.', serverBounds),
    firstToken: telemetry.histogram('gen_ai.server.time_to_first_token', 's', 'How long it took until a reply began.', firstTokenBounds),
    tokens: telemetry.histogram('gen_ai.client.token.usage', '{token}', 'Tokens of calls.', tokenBounds),
  }
  return { begin: (kind, place, requestId) => new CallTrace(instruments, kind, place, requestId) }
}

/** The trace of one call. The trace ignores everything after its end. */
export class CallTrace {
  readonly #given: Instruments
  readonly #operation: string
  readonly #span: Span
  readonly #startedMs: number
  #dial: { readonly span: Span; readonly attempt: Attempt; readonly startedMs: number } | null = null
  #settled: UsageEvent | null = null
  #isOver = false

  constructor(given: Instruments, kind: UsageKind, place: TracePlace, requestId: string) {
    const { name, outputType } = operations[kind]
    this.#given = given
    this.#operation = name
    this.#startedMs = given.clock.monotonicMs()
    this.#span = given.telemetry.begin(name, 'server', place.parent, {
      'gen_ai.operation.name': name,
      'brigade.kind': kind,
      'brigade.request_id': requestId,
      ...(outputType === undefined ? {} : { 'gen_ai.output.type': outputType }),
    })
    place.traceId = this.#span.link.traceId
  }

  /** The id of the trace, for the log. */
  get traceId(): string {
    return this.#span.link.traceId
  }

  /** Names the span after the model. Routing knows the model at this point, so the trace may name it. */
  planned(model: string, streams: boolean): void {
    this.#span.rename(`${this.#operation} ${model}`)
    this.#span.set({ 'gen_ai.request.model': model, ...(streams ? { 'gen_ai.request.stream': true } : {}) })
  }

  dials(attempt: Attempt): void {
    const { telemetry, clock } = this.#given
    const { route } = attempt
    const span = telemetry.begin(`${this.#operation} ${route.upstreamModel}`, 'client', this.#span.link, {
      'gen_ai.operation.name': this.#operation,
      'gen_ai.provider.name': providerName(route.provider.id),
      'gen_ai.request.model': route.upstreamModel,
      'brigade.byok': attempt.byok,
      ...addressOf(attempt),
    })
    this.#dial = { span, attempt, startedMs: clock.monotonicMs() }
  }

  routeFailed(reason: string): void {
    this.#endDial(reason)
  }

  /** Notes the settled usage. The span of a failed call stays open until the answer to the caller is known. */
  settled(event: UsageEvent): void {
    if (this.#isOver) return
    this.#settled = event
    const { provider, promptTokens, completionTokens, cachedTokens, cacheWriteTokens, reasoningTokens, firstByteMs } = event
    const usage = {
      'gen_ai.usage.input_tokens': promptTokens,
      'gen_ai.usage.output_tokens': completionTokens,
      ...(cachedTokens > 0 ? { 'gen_ai.usage.cache_read.input_tokens': cachedTokens } : {}),
      ...(cacheWriteTokens > 0 ? { 'gen_ai.usage.cache_creation.input_tokens': cacheWriteTokens } : {}),
      ...(reasoningTokens > 0 ? { 'gen_ai.usage.reasoning.output_tokens': reasoningTokens } : {}),
    }
    const firstChunk: Attributes = event.streamed && firstByteMs !== null ? { 'gen_ai.response.time_to_first_chunk': firstByteMs / 1000 } : {}
    const named = { ...(provider === '' ? {} : { 'gen_ai.provider.name': providerName(provider) }), 'gen_ai.response.model': event.model }
    this.#span.set({ ...named, ...usage, ...firstChunk, 'brigade.outcome': event.outcome, 'http.response.status_code': event.status })
    this.#dial?.span.set({ ...usage, ...firstChunk })
    this.#endDial(event.outcome === 'ok' ? null : event.outcome === 'failed' ? String(event.status) : event.outcome)
    if (event.outcome !== 'failed') this.#end(event.outcome === 'ok' ? null : event.outcome)
  }

  /** Notes that a reply was made. The call ends here when it has failed, because the reply is then a relayed refusal. Any other call ends in `settled`. */
  replied(): void {
    if (this.#settled?.outcome === 'failed') this.#end(String(this.#settled.status))
  }

  /** Ends a call that was refused or has failed with the error that the caller gets. */
  failed(thrown: unknown): void {
    if (this.#isOver) return
    const errorType = thrown instanceof GatewayError ? thrown.code : thrown instanceof Error ? thrown.name : 'unknown'
    if (thrown instanceof GatewayError) this.#span.set({ 'http.response.status_code': thrown.status })
    this.#endDial(errorType)
    this.#end(errorType)
  }

  #endDial(errorType: string | null): void {
    const dial = this.#dial
    if (dial === null) return
    this.#dial = null
    const { clock, clientDuration } = this.#given
    clientDuration((clock.monotonicMs() - dial.startedMs) / 1000, { ...this.#labels(dial.attempt.route), ...errorAttribute(errorType) })
    dial.span.end(errorType ?? undefined)
  }

  #end(errorType: string | null): void {
    if (this.#isOver) return
    this.#isOver = true
    const { clock, serverDuration, firstToken, tokens } = this.#given
    const event = this.#settled
    const labels = event === null ? { 'gen_ai.operation.name': this.#operation } : this.#labels({ provider: { id: event.provider }, modelId: event.model })
    serverDuration((clock.monotonicMs() - this.#startedMs) / 1000, { ...labels, ...errorAttribute(errorType) })
    if (event !== null) {
      if (event.firstByteMs !== null) firstToken(event.firstByteMs / 1000, labels)
      if (event.promptTokens > 0) tokens(event.promptTokens, { ...labels, 'gen_ai.token.type': 'input' })
      if (event.completionTokens > 0) tokens(event.completionTokens, { ...labels, 'gen_ai.token.type': 'output' })
    }
    this.#span.end(errorType ?? undefined)
  }

  #labels({ provider, modelId }: { readonly provider: { readonly id: string }; readonly modelId: string }): Attributes {
    return {
      'gen_ai.operation.name': this.#operation,
      'gen_ai.provider.name': providerName(this.#given.providerLabel(provider.id)),
      'gen_ai.request.model': this.#given.modelLabel(modelId),
    }
  }
}

const errorAttribute = (errorType: string | null): Attributes => (errorType === null ? {} : { 'error.type': errorType })

/** Returns the address of a provider of the catalog. The address of a server that an organisation registered stays out of traces. */
function addressOf({ route: { provider } }: Attempt): Attributes {
  if (provider.userGiven === true || !URL.canParse(provider.baseUrl)) return {}
  const { hostname, port, protocol } = new URL(provider.baseUrl)
  return { 'server.address': hostname, 'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) }
}
