import type { Clock } from '../../platform/clock.ts'
import type { Call } from '../../platform/endpoint.ts'
import type { Ids } from '../../platform/ids.ts'
import type { SessionPrincipal } from '../../platform/principal.ts'
import type { AuditTrail } from '../audit/audit.ts'
import type { Keys } from '../keys/keys.ts'

export interface CliLoginDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly keys: Keys
  readonly audit: AuditTrail
}

/** Where the command line waits for its key. */
export interface Waiting {
  readonly port: number
  readonly state: string
}

/** Bytes that keep two keys of one day apart. */
const nameBytes = 4

/** Hands a key to the command line on the same computer as the browser. */
export class CliLogin {
  readonly #deps: CliLoginDeps
  constructor(deps: CliLoginDeps) {
    this.#deps = deps
  }

  /** Makes a full key of the person in the organisation that they work in; the address on this computer that takes it. */
  async handOver(principal: SessionPrincipal, { port, state }: Waiting, call: Pick<Call, 'requestId' | 'clientIp'>): Promise<string> {
    const { clock, ids, keys, audit } = this.#deps
    const { orgId, userId } = principal
    const day = new Date(clock.nowMs()).toISOString().slice(0, 10)
    const made = await keys.create({ orgId, userId, workspaceId: null, name: `CLI ${day} ${ids.secret('', nameBytes)}`, scope: 'full' })
    await audit.record({ orgId, actor: principal, act: 'cliLogin', target: `key=${made.id}`, sourceIp: call.clientIp(), requestId: call.requestId }, 'ok')
    return `http://127.0.0.1:${port}/callback?${new URLSearchParams({ key: made.key, state })}`
  }
}

/** The address of the hand-over, to come back to after signing in. The state holds nothing that a URL would have to escape. */
export function cliLoginPath({ port, state }: Waiting): string {
  return `/cli/login?port=${port}&state=${state}`
}
