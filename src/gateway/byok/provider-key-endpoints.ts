import { z } from 'zod'
import { endpointOf } from '../../platform/endpoint.ts'
import type { Place } from '../providers/provider.ts'
import type { ProviderKeys } from './provider-keys.ts'

const row = endpointOf<{ providerKeys: ProviderKeys }>()

const requires = ({ providerKeys }: { providerKeys: ProviderKeys }): void => providerKeys.requireEnabled()
const path = z.object({ provider: z.string().describe('Provider id, as GET /me/byok lists it.') })
const tag = 'byok'

const provider = z.object({
  id: z.string(),
  name: z.string(),
  residency: z.enum(['india', 'global']),
  key_shape: z.string().nullable().describe('Regular expression of its keys; null = any text.'),
  takes_key: z.literal(false).optional().describe('False: it takes credentials only. Absent: it takes a key.'),
  credentials: z
    .enum(['aws', 'google', 'entra'])
    .optional()
    .describe('The credentials that it takes: an AWS access key, a service account of Google, a client secret of Entra. Absent: a key only.'),
  values: z.array(z.string()).optional().describe('The values of your account that fill its address. Absent: none.'),
  untried: z.literal(true).optional().describe('Brigade was never tried against the real service of this provider.'),
})
const savedKey = z.object({
  provider: z.string(),
  label: z.string().nullable(),
  mask: z.string().describe('Start and end of the key. It is never shown whole.'),
  always_use: z.boolean().describe("True: used ahead of the platform's key."),
  verified: z.boolean().describe('False: the provider answered, but has no call that would have told a wrong key.'),
  verified_at: z.string().nullable().describe('ISO 8601, UTC: when the provider last confirmed the key.'),
  models: z.int().describe('How many models it was found to reach.'),
  created_at: z.string().describe('ISO 8601, UTC.'),
  values: z.record(z.string(), z.string()).optional().describe('The values that fill the address. Absent: none.'),
})
// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing control characters is the point.
const label = z.string().regex(/^[^\u0000-\u001f\u007f-\u009f]{1,100}$/u, 'expected 1 to 100 characters without control characters')

const value = z.string().min(1).max(128).optional()

const definedValues = (values: Readonly<Record<string, string | undefined>>): Place =>
  Object.fromEntries(Object.entries(values).filter(([, text]) => text !== undefined))

export const providerKeyEndpoints = {
  listProviderKeys: row({
    at: 'GET /me/byok',
    auth: 'session',
    access: {},
    tag,
    summary: "Providers that take keys of your own, and the organisation's saved keys, masked.",
    input: {},
    output: z.object({ providers: z.array(provider), keys: z.array(savedKey) }),
    errors: ['byok_disabled'],
    requires,
    async handle({ providerKeys }, _input, call) {
      const providers = providerKeys.accepting().map(({ id, name, residency, keyShape, auth, identity, address, untried }) => ({
        id,
        name,
        residency: residency === 'india' ? 'india' : 'global',
        key_shape: keyShape,
        ...(auth === 'identity' ? { takes_key: false as const } : {}),
        ...(identity === undefined ? {} : { credentials: identity.kind }),
        ...(address === undefined ? {} : { values: [...address.names] }),
        ...(untried === undefined ? {} : { untried }),
      }))
      const keys = (await providerKeys.list(call.principal.orgId)).map(saved => ({
        provider: saved.providerId,
        label: saved.label,
        mask: saved.mask,
        always_use: saved.alwaysUse,
        verified: saved.verifiedAt !== null,
        verified_at: saved.verifiedAt?.toISOString() ?? null,
        models: saved.modelsCount,
        created_at: saved.createdAt.toISOString(),
        ...(Object.keys(saved.place).length === 0 ? {} : { values: saved.place as Record<string, string> }),
      }))
      return { providers, keys }
    },
  }),

  saveProviderKey: row({
    at: 'PUT /me/byok/{provider}',
    auth: 'session',
    access: { role: 'owner' },
    tag,
    summary: 'Saves a key at a provider after trying it there, and finds out its models. Without key: changes label and always_use of the saved one.',
    input: {
      path,
      body: z.strictObject({
        key: z.string().optional().describe('Sealed at rest and never shown again. Replaces the saved one when the provider takes it.'),
        credentials: z
          .record(z.string().max(60), z.string().max(20_000))
          .optional()
          .describe('Credentials of a cloud in place of a key. Only values are read from them: no field names an address, a file or a command.'),
        values: z
          .strictObject({ resource: value, region: value, project: value, location: value })
          .optional()
          .describe('Values of your account that fill the address of a cloud. They come with the key or the credentials.'),
        models: z
          .array(z.string().regex(/^[\x21-\x7e]{1,200}$/, 'expected a printable id without spaces'))
          .max(100)
          .optional()
          .describe('Deployments or models that the provider does not list. They come with the key or the credentials.'),
        label: label.nullable().optional().describe('For people. Left out: as it was.'),
        always_use: z.boolean().optional().describe("Use it ahead of the platform's key. Left out: as it was, at first false."),
      }),
    },
    output: z.object({
      ok: z.literal(true),
      provider: z.string(),
      label: z.string().nullable(),
      mask: z.string(),
      always_use: z.boolean(),
      verified: z.boolean().describe('False: the provider answered, but has no call that would have told a wrong key.'),
      models_discovered: z.int().describe('How many; GET /me/byok/{provider}/models names them.'),
    }),
    errors: ['forbidden', 'byok_disabled', 'bad_request', 'unknown_provider', 'bad_key', 'unavailable'],
    requires,
    async handle({ providerKeys }, { path, body }, call) {
      const { always_use: alwaysUse, values, ...given } = body
      const params = { ...given, alwaysUse, ...(values === undefined ? {} : { values: definedValues(values) }) }
      const saved = await providerKeys.save(call.principal.orgId, path.provider, params)
      return {
        ok: true,
        provider: path.provider,
        label: saved.label,
        mask: saved.mask,
        always_use: saved.alwaysUse,
        verified: saved.verified,
        models_discovered: saved.modelsCount,
      }
    },
  }),

  testProviderKey: row({
    at: 'POST /me/byok/{provider}/test',
    auth: 'session',
    access: { role: 'owner' },
    tag,
    summary: 'Tries the saved key at its provider. If the provider accepts it, its models are read again.',
    input: { path },
    output: z.object({ status: z.enum(['ok', 'rejected', 'unreachable']) }),
    errors: ['forbidden', 'byok_disabled', 'unknown_provider', 'not_found'],
    requires,
    handle: async ({ providerKeys }, { path }, call) => ({ status: await providerKeys.test(call.principal.orgId, path.provider) }),
  }),

  listProviderKeyModels: row({
    at: 'GET /me/byok/{provider}/models',
    auth: 'session',
    access: {},
    tag,
    summary: 'The models that the saved key was found to reach, as ids to send as `model`.',
    input: { path },
    output: z.object({ provider: z.string(), models: z.array(z.string().describe('provider/model')) }),
    errors: ['byok_disabled', 'unknown_provider', 'not_found'],
    requires,
    handle: async ({ providerKeys }, { path }, call) => ({ provider: path.provider, models: await providerKeys.models(call.principal.orgId, path.provider) }),
  }),

  removeProviderKey: row({
    at: 'DELETE /me/byok/{provider}',
    auth: 'session',
    access: { role: 'owner' },
    tag,
    summary: 'Removes the saved key. Calls stop using it immediately.',
    input: { path },
    output: z.object({ ok: z.literal(true), provider: z.string() }),
    errors: ['forbidden', 'byok_disabled', 'unknown_provider', 'not_found'],
    requires,
    async handle({ providerKeys }, { path }, call) {
      await providerKeys.remove(call.principal.orgId, path.provider)
      return { ok: true, provider: path.provider }
    },
  }),
}
