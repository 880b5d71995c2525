/** Connects the hints for the console to everything that reports changes. */
import { holdersOfAgents } from '../../agents/listing/agent-holders.ts'
import { sessionChanged } from '../../gateway/access/sessions.ts'
import { Hints } from '../../gateway/hints/hints.ts'
import { holdersOfKeys } from '../../gateway/keys/key-holders.ts'
import { mayRead } from '../../memory/access/path-rules.ts'
import type { Memory } from '../../memory/memory.ts'
import type { SessionPrincipal } from '../../platform/security/principal.ts'
import { Shares } from '../../platform/shares.ts'
import type { AppParts } from '../parts.ts'

type Parts = Pick<AppParts, 'db' | 'clock' | 'ids' | 'log' | 'config' | 'controlLog' | 'founders' | 'sessions' | 'limits' | 'memory' | 'followDeliveries'>

export function hintServices(parts: Parts): { readonly hints: Hints } {
  const { db, clock, ids, log, config, controlLog, founders, sessions, limits, memory } = parts
  const hints = new Hints({
    db,
    clock,
    log,
    controlLog,
    name: ids.requestId(),
    places: new Shares(config.HINT_STREAMS_MAX, config.ORG_SHARE_PERCENT),
    founderOf: founders.known,
    sessionChanged,
    sessionOf: sessionId => sessions.current(sessionId),
    holders: { agent: agents => holdersOfAgents(db, agents), key: keys => holdersOfKeys(db, keys) },
    readable: (principal, keys) => readableOf(memory, principal, keys),
    onObject: (orgId, listener) => memory.changes.on(orgId, ({ key }) => listener(key)),
  })
  limits.followSpend(hints)
  parts.followDeliveries((orgId, endpointId) => hints.delivered(orgId, endpointId))
  return { hints }
}

/** Path classes whose rights the database has. */
const sharedRoots: readonly string[] = ['workspaces/', 'shared/']

async function readableOf({ callers, isConfigured }: Memory, principal: SessionPrincipal, keys: readonly string[]): Promise<readonly string[]> {
  if (!(await isConfigured(principal.orgId))) return []
  const shared = keys.find(key => sharedRoots.some(root => key.startsWith(root)))
  const caller = await callers.forKey(principal, shared ?? keys[0] ?? '')
  return keys.filter(key => mayRead(caller, key))
}
