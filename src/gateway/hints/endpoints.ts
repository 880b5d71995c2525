import { endpointOf } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { Hints } from './hints.ts'

const row = endpointOf<{ hints: Hints }>()

export const hintEndpoints = {
  events: row({
    at: 'GET /me/events',
    auth: 'session',
    access: { noAgents: true },
    tag: 'console',
    summary:
      'A stream of hints (server-sent events) for the console: {"topic":"agent:7"} within a second of a change. It carries no data; read it again. Topics: usage, budget, agent, key, memory, webhook, member, tools, and reset after lost hints.',
    input: {},
    output: { media: 'text/event-stream' },
    errors: ['forbidden', 'places_taken', 'shutting_down', 'database_unavailable'],
    // A HEAD would open a stream.
    hasEffect: true,
    handle({ hints }, _input, { principal, signal }) {
      if (principal.kind !== 'session') throw fail('no_session')
      return hints.listen(principal, signal)
    },
  }),
}
