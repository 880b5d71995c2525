import type { Clock } from '../../../platform/clock.ts'
import type { Call } from '../../../platform/endpoint.ts'
import { fail, GatewayError } from '../../../platform/errors.ts'
import { Cancellation } from '../../../platform/loop/cancellation.ts'
import { CallCutError, everyToolCall, type Inflight } from '../../../platform/loop/inflight.ts'
import { type BearerPrincipal, type CallPolicy, mayActFor, type Principal } from '../../../platform/security/principal.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { Limits, Permit } from '../../limits/engine/admission.ts'
import type { UsageEvent } from '../../usage/events/record.ts'
import { type EnteredRun, enterRun, type RunEntryDeps, revokedError, runIdFor, withRunId } from '../../usage/runs/entry/enter-run.ts'
import { noteRun } from '../../usage/runs/entry/run-headers.ts'
import type { LoopCall, RunLoops } from '../../usage/runs/loops/run-loops.ts'
import { tagsOf } from '../../wire/runs/run-tags.ts'
import type { CallCredential, ToolCredentials } from '../oauth/tool-credentials.ts'
import type { CallableTool, OrgTools, ToolCatalog, ToolCredential } from '../registry/callable-tool.ts'
import type { ToolSearch } from '../search/tool-search.ts'
import type { CallToolResult, Progress, SentAnswers, ServerQuestions } from '../upstream/tool-call.ts'
import type { Upstreams } from '../upstream/upstream.ts'
import { UpstreamError } from '../upstream/upstream-error.ts'
import { allowanceOf, type ToolAllowance } from './allowance.ts'
import type { ServerCircuits } from './server-circuits.ts'
import { ToolArguments } from './tool-arguments.ts'
import { ToolCharge } from './tool-charge.ts'
import { toolConnectionOwner, toolOwner, toolServerOwner } from './tool-cuts.ts'
import { toolFailure } from './tool-failure.ts'
import type { AskedClient, ToolQuestion, ToolQuestions } from './tool-questions.ts'
import { markedResult, type ToolAnswer } from './tool-result.ts'

/** A registered agent that `x-br-agent-id` names, with the rules of the agent and of all agents above it. */
export interface NamedAgent {
  readonly id: number
  readonly status: 'active' | 'revoked'
  readonly ownerUser: number | null
  readonly ancestorIds: readonly number[]
  readonly policies: readonly CallPolicy[]
}

export interface ToolCallsDeps extends RunEntryDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly catalog: ToolCatalog
  readonly credentials: Pick<ToolCredentials, 'of'>
  readonly upstreams: Upstreams
  readonly circuits: ServerCircuits
  readonly questions: ToolQuestions
  readonly search: ToolSearch
  readonly limits: Pick<Limits<UsageEvent>, 'admit'>
  readonly inflight: Inflight
  /** Finds runs that repeat themselves. */
  readonly runLoops: Pick<RunLoops, 'begin'>
  /** The setting TOOL_GATEWAY. */
  readonly isOn: boolean
  /** The setting TOOL_RESULT_MAX_BYTES. */
  readonly maxResultBytes: number
  agentByLabel(orgId: number, label: string): NamedAgent | null | Promise<NamedAgent | null>
  /** Throws when the caller was revoked since the call began. */
  recheck(principal: BearerPrincipal): void
  /** Returns whether this process has not read the news for AGENT_STALE_MS, so that it cannot know whether a tool may still be called. */
  isStale(): boolean
}

/** The part of a call that tools need. */
export type ToolCallContext = Pick<Call<Principal>, 'principal' | 'agentLabel' | 'signal' | 'requestId' | 'runId' | 'runHeaders' | 'joinRun'> & {
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** What the client can be asked. Left out: nothing. */
  readonly asked?: AskedClient | undefined
}

/** The part of a call that says who calls. */
export type ToolCallerContext = Pick<ToolCallContext, 'principal' | 'agentLabel'> & { readonly runId?: string | null | undefined }

/** A caller with what it may call. */
interface Bound {
  readonly principal: BearerPrincipal
  readonly agentId: number | null
  readonly agentLabel: string | null
  readonly ancestorIds: readonly number[]
  readonly policies: readonly CallPolicy[]
  /** The run that the call names. */
  readonly runId: string | null
  readonly allows: ToolAllowance
}

/** Lists and calls the tools that a caller may call now. HTTP and MCP use the same functions. */
export class ToolCalls {
  readonly #deps: ToolCallsDeps
  readonly #arguments: ToolArguments

  constructor(deps: ToolCallsDeps) {
    this.#deps = deps
    this.#arguments = new ToolArguments(deps.clock)
  }

  /** Throws `unavailable` while the tool gateway is switched off. */
  requireOn(): void {
    if (!this.#deps.isOn) throw fail('unavailable', { message: 'The tool gateway is switched off here. The operator switches it on with TOOL_GATEWAY=on.' })
  }

  /** Returns at most `limit` tools that the caller may call, by name, behind the name `after`. Their definitions have about 1 MiB together. No server is asked. */
  async page(context: ToolCallContext, { slugs, after, limit }: PageParams): Promise<ToolPage> {
    const { allows, principal } = await this.#bound(context)
    const all = (await this.#toolsOf(principal.orgId)).all()
    const tools: CallableTool[] = []
    let bytes = 0
    for (let i = after === null ? 0 : firstAfter(all, after); i < all.length; i++) {
      const tool = all[i] as CallableTool
      if ((slugs !== null && !slugs.has(tool.slug)) || !allows(tool.publicName)) continue
      bytes += sizeOf(tool)
      if (tools.length === limit || (bytes > pageMaxBytes && tools.length > 0)) return { tools, next: tools.at(-1)?.publicName ?? null }
      tools.push(tool)
    }
    return { tools, next: null }
  }

  /** Returns a caller with what it may call. Throws `unavailable` while the tool gateway is switched off, and `agent_revoked_label`. */
  callerOf(context: ToolCallerContext): Promise<{ readonly principal: BearerPrincipal; readonly allows: ToolAllowance }> {
    return this.#bound(context)
  }

  /** Returns at most `limit` tools that the caller may call and that fit the query, best first. No server is asked. */
  async search(context: ToolCallContext, query: string, limit: number): Promise<readonly CallableTool[]> {
    const { allows, principal } = await this.#bound(context)
    return this.#deps.search.find(principal.orgId, await this.#toolsOf(principal.orgId), query, limit, ({ publicName }) => allows(publicName))
  }

  /** Returns a tool that the caller may call. Throws `tool_not_found` for every other name. */
  async find(context: ToolCallContext, name: string): Promise<CallableTool> {
    const { allows, principal } = await this.#bound(context)
    return allowed(await this.#toolsOf(principal.orgId), name, allows)
  }

  /**
   * Calls a tool once. Throws `tool_not_found`, `bad_request` for arguments that the approved schema refuses, the refusals of budgets and limits, and the
   * failures of the server.
   */
  async call(context: ToolCallContext, name: string, args: Readonly<Record<string, unknown>>): Promise<AnsweredTool> {
    this.requireOn()
    const runId = context.principal.kind === 'session' ? null : runIdFor(context.principal, context.runId ?? null)
    if (runId === null) return await this.#callIn(null, context, name, args)
    try {
      return await this.#callIn(runId, context, name, args)
    } catch (error) {
      throw withRunId(error, runId)
    }
  }

  async #callIn(runId: string | null, context: ToolCallContext, name: string, args: Readonly<Record<string, unknown>>): Promise<AnsweredTool> {
    const { clock, circuits, questions } = this.#deps
    const startedAtMs = clock.monotonicMs()
    const bound = await this.#bound({ ...context, runId })
    const tools = await this.#toolsOf(bound.principal.orgId)
    const tool = allowed(tools, name, bound.allows)
    await this.#arguments.check(tool, args)
    const credential = await this.#deps.credentials.of(bound.principal.orgId, tools, tool, bound.principal.userId)
    circuits.check(credential.circuit)
    checkPrice(tool, bound.policies)
    const tags = context.runHeaders === undefined ? null : tagsOf(context.runHeaders)
    const entered = await enterRun(bound.principal, bound, runId, context, this.#deps)
    const loop = entered === null ? null : await this.#watchLoops(entered)
    const permit = await this.#admit(bound, tool, entered)
    const { principal, agentId, agentLabel } = bound
    const facts = { principal, agentId, agentLabel, requestId: context.requestId, tool, startedAtMs, run: entered?.run ?? null, tags }
    const charge = new ToolCharge(permit, facts, () => clock.monotonicMs())
    const cut = this.#watch(bound, tool, credential, context)
    try {
      await this.#confirm(bound, tool, credential)
      cut.signal.throwIfAborted()
      const owner = { principal, tool, args }
      const asked = context.asked === undefined ? null : questions.answersFor(context.asked, owner)
      await charge.open()
      const said = await this.#dial({ tool, args, credential, charge, signal: cut.signal, onProgress: context.onProgress, asked })
      loop?.answered()
      const answer = 'requests' in said ? questions.passedOn(said, context.asked ?? noClient, owner) : markedResult(said, tool)
      return { answer, headers: headersOf(runId, permit) }
    } catch (error) {
      throw await this.#ofNamed(error, bound)
    } finally {
      // A call that was not settled never came to its dial.
      charge.release()
      cut.end()
    }
  }

  async #dial(dial: Dial): Promise<CallToolResult | ServerQuestions> {
    const { credential, charge } = dial
    const { circuits, maxResultBytes } = this.#deps
    const { circuit } = credential
    try {
      const result = await this.#sent(dial)
      circuits.succeeded(circuit)
      await charge.settle(true, 'isError' in result && result.isError === true ? 'failed' : 'ok', 200)
      return result
    } catch (thrown) {
      const { error, outcome, status, isOfServer } = toolFailure(thrown, maxResultBytes)
      if (isOfServer) circuits.failed(circuit)
      const wasSent = dial.wasSent === true
      await charge.settle(wasSent || (thrown instanceof UpstreamError && thrown.isSent), outcome, status)
      throw wasSent && thrown instanceof GatewayError ? sentBefore(thrown) : error
    }
  }

  /** Sends the call. A server that answers 401 has done nothing, so the call is sent once more when there is another token. */
  async #sent(dial: Dial): Promise<CallToolResult | ServerQuestions> {
    const { tool, args, credential, signal, onProgress, asked } = dial
    const { upstreams, maxResultBytes } = this.#deps
    const { url, timeoutMs } = tool
    const options = { signal, onProgress, maxResultBytes, inputSchema: tool.definition['inputSchema'], asked }
    const send = (header: ToolCredential | null) => upstreams.callTool({ url, header, timeoutMs }, tool.upstreamName, args, options)
    const header = await credential.header(signal)
    try {
      return await send(header)
    } catch (thrown) {
      if (!(thrown instanceof UpstreamError) || thrown.facts.status !== 401) throw thrown
      dial.wasSent = thrown.isSent
      const another = await credential.another(signal)
      if (another === null) throw thrown
      return await send(another).catch((again: unknown) => {
        if (again instanceof UpstreamError) again.isSent ||= thrown.isSent
        throw again
      })
    }
  }

  /** Holds the price in every budget of the caller. A price of 0 is counted and needs a budget that is not used up. Decision 0789 gives the reasons. */
  #admit(
    { principal, agentId, ancestorIds, policies }: Bound,
    { priceUinr }: CallableTool,
    entered: EnteredRun | null,
  ): Permit<UsageEvent> | Promise<Permit<UsageEvent>> {
    const { limits, ids, clock } = this.#deps
    return limits.admit({
      principal,
      eventId: ids.uuidv7(clock.nowMs()),
      agentId,
      agentAncestorIds: ancestorIds,
      policies,
      run: entered?.capped ?? null,
      needUinr: priceUinr,
      worstUinr: priceUinr,
      isTool: true,
    })
  }

  /**
   * Registers the call under its tool, its server and the agent that a key names. The edge has registered it under its credential. From here on, each of them
   * can end the call.
   */
  #watch(
    { principal, agentId, ancestorIds }: Bound,
    tool: CallableTool,
    { connectionId }: CallCredential,
    { signal }: ToolCallContext,
  ): { readonly signal: Cancellation; end(): void } {
    const cut = new Cancellation()
    const onAbort = (): void => cut.abort(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    const named = principal.kind === 'key' && agentId !== null ? [agentId, ...ancestorIds] : []
    const ofConnection = connectionId === null ? [] : [toolConnectionOwner(connectionId)]
    const owners = { agentIds: named, keyId: null, tokenIds: [toolOwner(tool.toolId), toolServerOwner(tool.serverId), everyToolCall, ...ofConnection] }
    const unregister = this.#deps.inflight.register(owners, cut)
    return {
      signal: cut,
      end() {
        unregister()
        signal.removeEventListener('abort', onAbort)
      },
    }
  }

  /** Checks again what may have changed before the call was registered. Whatever changes later cuts it. */
  async #confirm({ principal, agentId, allows, runId }: Bound, tool: CallableTool, credential: CallCredential): Promise<void> {
    this.#deps.recheck(principal)
    if (this.#deps.isStale()) throw new CallCutError('tools_stale')
    if (principal.kind === 'key' && agentId !== null)
      await this.#refuseRevoked(await this.#deps.agentByLabel(principal.orgId, String(agentId)), principal, runId)
    const tools = await this.#toolsOf(principal.orgId)
    const now = allowed(tools, tool.publicName, allows)
    if (now.hash !== tool.hash) throw unknownTool()
    const again = await this.#deps.credentials.of(principal.orgId, tools, now, principal.userId)
    if (now.url !== tool.url || again.circuit !== credential.circuit) throw new CallCutError('tool_server_changed')
  }

  #toolsOf(orgId: number): Promise<OrgTools> {
    return this.#deps.catalog.of(orgId)
  }

  async #bound({ principal, agentLabel: label, runId = null }: ToolCallerContext): Promise<Bound> {
    this.requireOn()
    if (principal.kind === 'session') throw fail('invalid_api_key')
    const { policies } = principal
    if (principal.kind === 'agent') {
      const { agentId, ancestorIds } = principal
      return {
        principal,
        agentId,
        agentLabel: null,
        ancestorIds,
        policies,
        runId,
        allows: allowanceOf({ isKey: false, agentIds: [agentId, ...ancestorIds], policies }),
      }
    }
    const named = label === null ? null : await this.#deps.agentByLabel(principal.orgId, label)
    await this.#refuseRevoked(named, principal, runId)
    if (named === null || !mayActFor(principal, named.ownerUser))
      return { principal, agentId: null, agentLabel: label, ancestorIds: [], policies, runId, allows: allowanceOf({ isKey: true, agentIds: [], policies }) }
    const all = [...policies, ...named.policies]
    const allows = allowanceOf({ isKey: true, agentIds: [named.id, ...named.ancestorIds], policies: all })
    return { principal, agentId: named.id, agentLabel: null, ancestorIds: named.ancestorIds, policies: all, runId, allows }
  }

  async #refuseRevoked(named: NamedAgent | null, { orgId }: BearerPrincipal, runId: string | null): Promise<void> {
    if (named?.status === 'revoked') throw await revokedError(named, runId, id => this.#deps.agentByLabel(orgId, String(id)))
  }

  /** Returns the error of a call that the revoke of an agent has ended. The key that names the agent is not revoked itself. */
  async #ofNamed(error: unknown, { principal, agentId, ancestorIds, runId }: Bound): Promise<unknown> {
    const isRevoked = error instanceof CallCutError && error.reason === 'agent_revoked' && principal.kind === 'key' && agentId !== null
    if (!isRevoked) return error
    return revokedError({ status: 'revoked', ancestorIds }, runId, id => this.#deps.agentByLabel(principal.orgId, String(id)))
  }

  /** Calls of tools count for the pace of their run. What they repeat is seen in the calls of the model. */
  #watchLoops({ ref, key, actor, loop }: EnteredRun): LoopCall | null | Promise<LoopCall> {
    return loop === 'off' ? null : this.#deps.runLoops.begin({ ref, key, actor, loop }, { body: null, turn: null }, undefined)
  }
}

/** The answer of a tool with the headers of the reply. */
export interface AnsweredTool {
  readonly answer: ToolAnswer | ToolQuestion
  readonly headers: Readonly<Record<string, string>>
}

function headersOf(runId: string | null, permit: Permit<UsageEvent>): Record<string, string> {
  const headers: Record<string, string> = {}
  if (runId !== null) noteRun(headers, runId, permit)
  return headers
}

/** Maximum bytes of the definitions of a page. One definition may be larger. */
const pageMaxBytes = 1024 * 1024
/** The bytes of definitions, which are measured once. */
const sizes = new WeakMap<CallableTool, number>()

function sizeOf(tool: CallableTool): number {
  const known = sizes.get(tool)
  if (known !== undefined) return known
  const bytes = Buffer.byteLength(JSON.stringify(tool.definition))
  sizes.set(tool, bytes)
  return bytes
}

/** What a page contains. `slugs` null: the tools of every server. */
export interface PageParams {
  readonly slugs: ReadonlySet<string> | null
  readonly after: string | null
  readonly limit: number
}

/** A page of tools. `next` is the name behind which the next page begins. */
export interface ToolPage {
  readonly tools: readonly CallableTool[]
  readonly next: string | null
}

interface Dial {
  readonly tool: CallableTool
  readonly args: Readonly<Record<string, unknown>>
  readonly credential: CallCredential
  readonly charge: ToolCharge
  readonly signal: Cancellation
  readonly onProgress: ToolCallContext['onProgress']
  readonly asked: SentAnswers | null
  /** True when bytes of a first try have left. */
  wasSent?: boolean
}

/** Returns the error of a renewal after a first try, which was sent and counts. */
const sentBefore = ({ errorName, options }: GatewayError): GatewayError =>
  fail(errorName, { ...options, message: 'The server of this tool refused its token (401), and there is no other one now. The call was sent and counts.' })

/** A client that cannot be asked. */
const noClient: AskedClient = { modes: { form: false, url: false }, answers: undefined, state: undefined }

/** Unknown names and names that the caller may not use get the same error, so that no name can be guessed. */
const unknownTool = () => fail('tool_not_found')

function allowed(tools: OrgTools, name: string, allows: ToolAllowance): CallableTool {
  const tool = tools.byName(name)
  if (tool === undefined || !allows(name)) throw unknownTool()
  return tool
}

function checkPrice({ priceUinr }: CallableTool, policies: readonly CallPolicy[]): void {
  if (policies.some(({ maxCostUinr }) => maxCostUinr !== null && priceUinr > maxCostUinr))
    throw fail('call_cap_exceeded', { message: 'A call of this tool costs more than a call of this key or agent may cost (max_cost_inr_per_call).' })
}

/** Returns the place of the first tool whose name comes after a name. */
function firstAfter(all: readonly CallableTool[], name: string): number {
  let low = 0
  let high = all.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((all[middle] as CallableTool).publicName <= name) low = middle + 1
    else high = middle
  }
  return low
}
