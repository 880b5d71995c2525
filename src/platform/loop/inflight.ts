/**
 * Running calls by agent, by key, by token and by run, so that a revoke can cut them. An edge or the pipeline registers a call *before* it checks the agent's epoch
 * a second time. So every revoke is either seen by the check or cuts the registered call.
 */
export type CutReason =
  | 'agent_revoked'
  | 'agent_paused'
  | 'key_revoked'
  | 'token_revoked'
  | 'run_ended'
  | 'agent_stale'
  | 'database_away'
  | 'shutdown'
  /** The tool of an MCP server was blocked. */
  | 'tool_blocked'
  /** The MCP server of a tool was switched off or removed. */
  | 'tool_server_off'
  /** The address or the credential of the MCP server of a tool was replaced or removed. */
  | 'tool_server_changed'
  /** The connection with the MCP server of a tool has ended. */
  | 'tool_connection_ended'
  /** This process has not read for too long whether its tools may still be called. */
  | 'tools_stale'

/** The owner of all running calls of tools in this process. */
export const everyToolCall = 'tool_calls'

/** The abort reason of a call that the gateway itself cut. */
export class CallCutError extends Error {
  override readonly name = 'CallCutError'
  readonly reason: CutReason
  /** The run of the call. Null until the call notes it. */
  readonly runId: string | null
  constructor(reason: CutReason, runId: string | null = null) {
    super(reason)
    this.reason = reason
    this.runId = runId
  }
}

/** A running call: an AbortController or a Cancellation. */
export interface Abortable {
  abort(reason: CallCutError): void
}

export interface CallOwners {
  readonly agentIds: readonly number[]
  readonly keyId: number | null
  /** For an agent token: its own id and the ids of the tokens from which it was made. For a call of a tool: `tool:<id>`, `tool_server:<id>` and `everyToolCall`. */
  readonly tokenIds?: readonly string[]
}

export class Inflight {
  readonly #byAgent = new Map<number, Set<Abortable>>()
  readonly #byKey = new Map<number, Set<Abortable>>()
  readonly #byToken = new Map<string, Set<Abortable>>()
  readonly #byRun = new Map<string, Set<Abortable>>()
  readonly #all = new Set<Abortable>()
  #idle: (() => void)[] = []

  /** Registers a call under its agent, that agent's ancestors, its key and its token. The returned function removes it. */
  register(owners: CallOwners, call: Abortable): () => void {
    this.#all.add(call)
    for (const id of owners.agentIds) put(this.#byAgent, id, call)
    if (owners.keyId !== null) put(this.#byKey, owners.keyId, call)
    if (owners.tokenIds !== undefined) for (const id of owners.tokenIds) put(this.#byToken, id, call)
    return () => {
      this.#all.delete(call)
      for (const id of owners.agentIds) drop(this.#byAgent, id, call)
      if (owners.keyId !== null) drop(this.#byKey, owners.keyId, call)
      if (owners.tokenIds !== undefined) for (const id of owners.tokenIds) drop(this.#byToken, id, call)
      if (this.#all.size === 0) for (const wake of this.#idle.splice(0)) wake()
    }
  }

  /** Registers a call under its run, which is known later than its owners. The returned function removes it. */
  joinRun(runKey: string, call: Abortable): () => void {
    put(this.#byRun, runKey, call)
    return () => drop(this.#byRun, runKey, call)
  }

  /** Returns the number of running calls of an agent and of the agents below it. */
  countOf(agentId: number): number {
    return this.#byAgent.get(agentId)?.size ?? 0
  }

  /** Aborts every call of an agent. Returns how many. */
  abortAgent(agentId: number, reason: CutReason): number {
    return abort(this.#byAgent.get(agentId), reason)
  }

  /** Aborts every call of a key, also the calls of its agents. Returns how many. */
  abortKey(keyId: number, reason: CutReason): number {
    return abort(this.#byKey.get(keyId), reason)
  }

  /** Aborts every call of a token and of the tokens that were made from it. Returns how many. */
  abortToken(tokenId: string, reason: CutReason): number {
    return abort(this.#byToken.get(tokenId), reason)
  }

  /** Aborts every call of a run. Returns how many. */
  abortRun(runKey: string, reason: CutReason): number {
    return abort(this.#byRun.get(runKey), reason)
  }

  /** Aborts every call with an agent token. Returns how many. */
  abortAllAgents(reason: CutReason): number {
    let count = 0
    for (const calls of this.#byAgent.values()) count += abort(calls, reason)
    return count
  }

  abortAll(reason: CutReason): number {
    return abort(this.#all, reason)
  }

  get size(): number {
    return this.#all.size
  }

  /** Resolves when no call is running. */
  whenIdle(): Promise<void> {
    return this.#all.size === 0 ? Promise.resolve() : new Promise(resolve => this.#idle.push(resolve))
  }
}

function put<K>(map: Map<K, Set<Abortable>>, id: K, call: Abortable): void {
  const set = map.get(id)
  if (set) set.add(call)
  else map.set(id, new Set([call]))
}

function drop<K>(map: Map<K, Set<Abortable>>, id: K, call: Abortable): void {
  const set = map.get(id)
  set?.delete(call)
  if (set?.size === 0) map.delete(id)
}

function abort(calls: Set<Abortable> | undefined, reason: CutReason): number {
  if (!calls) return 0
  const list = [...calls]
  for (const call of list) call.abort(new CallCutError(reason))
  return list.length
}
