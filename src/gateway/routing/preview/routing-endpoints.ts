import { z } from 'zod'
import { cursorCharsMax } from '../../../platform/db/list-cursor.ts'
import { endpointOf } from '../../../platform/endpoint.ts'
import { planningErrors } from '../../../platform/errors.ts'
import { ownerOf, searchText, textOf } from '../../../platform/values/list-params.ts'
import { chainSorts, chainsPageMax } from '../chain-list.ts'
import type { Chains } from '../chains.ts'
import type { RoutePreview } from './preview.ts'

const row = endpointOf<{ chains: Chains; routePreview: RoutePreview }>()

const tag = 'routing'
const path = z.object({
  model: z
    .string()
    .max(256)
    .regex(/^\P{Cc}*$/u, 'must not hold control characters')
    .describe('Id of a model of the catalog; slashes and colons may be written plainly or percent-encoded.'),
})
const step = z.object({ model: z.string(), provider: z.string().optional() })
const chain = z.object({ model: z.string(), steps: z.array(step) })

export const routingEndpoints = {
  listChains: row({
    at: 'GET /me/routing',
    auth: 'session',
    access: {},
    tag,
    summary: 'The fallback chains of the organisation.',
    input: {
      query: z.object({
        q: searchText('A part of the model id, in upper or lower case.'),
        owner: z.string().optional().describe('The user id of the person who saved the chain last, or me.'),
        sort: z.enum(chainSorts).optional().describe('model (the default) or updated (latest first).'),
        limit: z.coerce.number().int().min(1).max(chainsPageMax).default(chainsPageMax).describe(`Chains of a page, at most ${chainsPageMax}.`),
        cursor: z.string().max(cursorCharsMax).optional().describe('next_cursor of the page before, in the same order.'),
      }),
    },
    output: z.object({ chains: z.array(chain), next_cursor: z.string().nullable().describe('Null after the last page. Long chains make a page shorter.') }),
    errors: ['bad_request'],
    async handle({ chains }, { query: { q, owner, ...rest } }, { principal }) {
      const page = await chains.list(principal.orgId, { ...rest, text: textOf(q), ownerUser: ownerOf(owner, principal) })
      return { chains: page.chains, next_cursor: page.nextCursor }
    },
  }),

  getChain: row({
    at: 'GET /me/routing/{model+}',
    auth: 'session',
    access: {},
    tag,
    summary: 'The chain that is saved for a model.',
    input: { path },
    output: chain,
    errors: ['not_found'],
    handle: ({ chains }, { path: { model } }, call) => chains.get(call.principal.orgId, model),
  }),

  saveChain: row({
    at: 'PUT /me/routing/{model+}',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Saves the chain of a model: it replaces the default routing of that model for the whole organisation, within a minute everywhere.',
    input: {
      path,
      body: z.object({
        steps: z
          .unknown()
          .optional()
          .describe('1 to 10 steps, each a model id or {model, provider?}; dialed in this order. Example: ["m", {"model":"n","provider":"p"}].'),
      }),
    },
    output: z.object({ ok: z.literal(true), model: z.string(), steps: z.array(step) }),
    errors: ['bad_model', 'bad_steps'],
    async handle({ chains }, { path: { model }, body }, call) {
      return { ok: true, ...(await chains.save(call.principal.orgId, call.principal.userId, model, body.steps)) }
    },
  }),

  deleteChain: row({
    at: 'DELETE /me/routing/{model+}',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Removes the chain of a model, which has its default routing again.',
    input: { path },
    output: z.object({ ok: z.literal(true) }),
    errors: ['not_found'],
    async handle({ chains }, { path: { model } }, call) {
      await chains.remove(call.principal.orgId, model)
      return { ok: true }
    },
  }),

  previewRoute: row({
    at: 'POST /me/route/preview',
    auth: 'key-or-session',
    access: { agentScope: 'inference' },
    tag,
    summary:
      'Where a call with this body would go, and why: chat, messages, responses, embeddings, images, edits, audio, recognised by the fields of the body. No provider is contacted, and nothing is held or counted. Budgets and balances are not checked.',
    input: {
      body: z.looseObject({
        model: z
          .string()
          .optional()
          .describe('A catalog id, an auto:* preset or provider/model-id. Router fields, messages and tools count when they are sent.'),
      }),
    },
    output: z.object({
      model: z.string(),
      provider: z.string(),
      preset: z.string().optional(),
      capability: z.string().optional(),
      reason: z.string().describe('Which rule chose the first route.'),
      candidates: z
        .array(z.object({ model: z.string(), provider: z.string().nullable(), eligible: z.boolean(), why: z.string() }))
        .describe('In the order of their dials, then those that would not be dialed. provider is null for a chain step that no route stands for.'),
    }),
    audit: false,
    errors: [...planningErrors, 'model_not_found_media', 'unsupported_operation'],
    handle: ({ routePreview }, { body }, call) => routePreview.preview(body, call.principal, call.agentLabel),
  }),
}
