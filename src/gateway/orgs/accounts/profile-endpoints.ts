import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import type { Profiles } from './profile.ts'

const row = endpointOf<{ profiles: Profiles }>()

const profile = z.object({
  model: z.string().nullable().describe('What agents ask for when nothing else is said; null = unset.'),
  connectors: z.array(z.string()).describe('Names of environment variables that connectors read.'),
  rules: z.string().nullable().describe('Text for the instructions of coding agents; null = unset.'),
})

export const profileEndpoints = {
  getProfile: row({
    at: 'GET /v1/me/profile',
    auth: 'key',
    access: {},
    tag: 'people',
    summary: 'The coding profile of the person behind this credential; defaults while none is saved.',
    input: {},
    output: profile,
    errors: [],
    handle: ({ profiles }, _input, { principal }) => profiles.get(principal.orgId, principal.userId),
  }),

  putProfile: row({
    at: 'PUT /v1/me/profile',
    auth: 'key',
    access: { scope: 'full', userBacked: true },
    tag: 'people',
    summary: 'Replaces the coding profile. A field that is left out is unset.',
    input: {
      body: z.object({
        model: z.string().nullable().optional().describe('Id of the catalog, of a preset, or provider/model.'),
        connectors: z.array(z.string()).optional().describe('Names of environment variables, at most 100. Never values.'),
        rules: z.string().nullable().optional().describe('At most 32 KiB.'),
      }),
    },
    output: profile,
    errors: ['forbidden', 'bad_request', 'bad_model'],
    // The audit trail does not record how people configure their own coding agents.
    audit: false,
    handle({ profiles }, { body }, { principal }) {
      if (principal.userId === null) throw fail('forbidden')
      const { model = null, connectors = [], rules = null } = body
      return profiles.put(principal.orgId, principal.userId, { model, connectors, rules })
    },
  }),
}
