import { z } from 'zod'
import { endpointOf, reply } from '../../platform/endpoint.ts'
import { pageHeaders, replyWithPage } from '../../platform/public-page.ts'
import { rowId } from '../../platform/values/row-id.ts'
import type { CollectionRegistry } from './collection-registry.ts'
import type { CollectionSharing } from './collection-sharing.ts'
import { collectionView, collectionWithVersionsView, listedView, ownJson, stepsView, versionsJson } from './collection-views.ts'
import { type Collections, collectionsPageMax, noCollection } from './collections.ts'

const row = endpointOf<{ collections: Collections; collectionSharing: CollectionSharing; collectionRegistry: CollectionRegistry }>()

const tag = 'collections'
const idPath = z.object({ id: z.string().describe('Id of a collection of the organisation.') })
const slugPath = z.object({ slug: z.string().max(256).describe('Slug of a public collection, or of one of the organisation.') })

/** Returns the id in the path. Throws `not_found` for a text that does not have the form of an id. */
function idOf(path: { id: string }): number {
  const id = rowId(path.id)
  if (id === null) throw noCollection()
  return id
}

/** A field that the schema accepts with any type. The service checks the field and has a specific error for it. */
const looked = (meta: Readonly<Record<string, unknown>>) => z.unknown().optional().meta(meta)
const stepSchema = {
  oneOf: [{ type: 'string' }, { type: 'object', properties: { model: { type: 'string' }, provider: { type: ['string', 'null'] } }, required: ['model'] }],
}
const params = {
  name: looked({ type: 'string', minLength: 1, maxLength: 100, description: '1 to 100 characters. The slug is made of the first name.' }),
  model: looked({ type: 'string', description: 'Id of a model of the catalog, not a virtual one.' }),
  steps: looked({
    type: 'array',
    minItems: 1,
    maxItems: 10,
    items: stepSchema,
    description: '1 to 10 steps, each a model id or {model, provider?}; dialed in this order. Example: ["m", {"model":"n","provider":"p"}].',
  }),
  readme_md: looked({ type: ['string', 'null'], description: 'Markdown of at most 64 KiB. Default: none.' }),
  public: z.boolean().nullish().describe('Whether everybody sees it, with all its versions. Default: false.'),
}
const paramsOf = ({ name, model, steps, readme_md, public: isPublic }: z.output<z.ZodObject<typeof params>>) => ({
  name,
  model,
  steps,
  readmeMd: readme_md,
  isPublic: isPublic ?? undefined,
})
const contentErrors = ['bad_request', 'bad_name', 'bad_model', 'bad_steps', 'bad_readme'] as const

export const collectionEndpoints = {
  listCollections: row({
    at: 'GET /me/collections',
    auth: 'session',
    access: {},
    tag,
    summary: 'The collections of the organisation, newest first: private ones, public ones and forks.',
    input: {
      query: z.object({
        limit: z.coerce
          .number()
          .int()
          .min(1)
          .max(collectionsPageMax)
          .default(collectionsPageMax)
          .describe(`Collections of a page, at most ${collectionsPageMax}.`),
        cursor: z.string().optional().describe('next_cursor of the page before.'),
      }),
    },
    output: z.object({
      collections: z.array(collectionView),
      next_cursor: z.string().nullable().describe('null: this was the last page. Long readmes make a page shorter.'),
    }),
    errors: ['bad_request'],
    async handle({ collections }, { query }, call) {
      const page = await collections.list(call.principal.orgId, query.limit, query.cursor ?? null)
      return { collections: page.collections.map(ownJson), next_cursor: page.nextCursor }
    },
  }),

  createCollection: row({
    at: 'POST /me/collections',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Makes a collection: a chain of steps for a model, with a readme. It routes no calls until it is imported.',
    input: { body: z.object(params).meta({ required: ['name', 'model', 'steps'] }) },
    output: collectionView,
    status: 201,
    errors: [...contentErrors, 'cap'],
    handle: async ({ collections }, { body }, { principal }) => ownJson(await collections.create(principal.orgId, principal.userId, paramsOf(body))),
  }),

  getCollection: row({
    at: 'GET /me/collections/{id}',
    auth: 'session',
    access: {},
    tag,
    summary: 'One collection of the organisation with its versions, as it is or as it was in one of them.',
    input: {
      path: idPath,
      query: z.object({
        version: z.coerce
          .number()
          .int()
          .min(1)
          .max(2 ** 31 - 1)
          .optional()
          .describe('Name, model, steps and readme as they were then.'),
      }),
    },
    output: collectionWithVersionsView,
    errors: ['bad_request', 'not_found'],
    async handle({ collections }, { path, query }, call) {
      const { collection, versions } = await collections.get(call.principal.orgId, idOf(path), query.version ?? null)
      return { ...ownJson(collection), versions: versionsJson(versions) }
    },
  }),

  changeCollection: row({
    at: 'PATCH /me/collections/{id}',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary:
      'Changes the fields in the body. Another name, model, steps or readme makes the next version; an edit without effect, and publishing, make no version.',
    input: { path: idPath, body: z.object(params) },
    output: collectionView.extend({ ok: z.literal(true) }),
    errors: [...contentErrors, 'not_found'],
    handle: async ({ collections }, { path, body }, { principal }) => ({
      ok: true,
      ...ownJson(await collections.change(principal.orgId, principal.userId, idOf(path), paramsOf(body))),
    }),
  }),

  deleteCollection: row({
    at: 'DELETE /me/collections/{id}',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary: 'Removes a collection with its versions and stars. Forks of it stay, and so does routing that was made of it.',
    input: { path: idPath },
    output: z.object({ ok: z.literal(true) }),
    errors: ['not_found'],
    async handle({ collections }, { path }, call) {
      await collections.remove(call.principal.orgId, idOf(path))
      return { ok: true }
    },
  }),

  starCollection: row({
    at: 'POST /me/collections/star/{slug}',
    auth: 'session',
    access: {},
    tag,
    summary: "Gives the organisation's star to a collection, or takes it back when it has one. An organisation has one star for each.",
    input: {
      path: slugPath,
      body: z.object({ starred: z.boolean().nullish().describe('How it is to be, for callers who may send twice. Default: the other way round than it is.') }),
    },
    output: z.object({ ok: z.literal(true), id: z.int(), starred: z.boolean(), stars: z.int() }),
    errors: ['bad_request', 'not_found'],
    handle: async ({ collectionSharing }, { path, body }, call) => ({
      ok: true,
      ...(await collectionSharing.star(call.principal.orgId, path.slug, body.starred ?? null)),
    }),
  }),

  forkCollection: row({
    at: 'POST /me/collections/fork/{slug}',
    auth: 'session',
    access: {},
    tag,
    summary: 'Copies a collection into the organisation, private and at version 1. 200 with the fork that there is already, 201 with a new one.',
    input: { path: slugPath },
    output: collectionView,
    status: 201,
    errors: ['not_found', 'cap'],
    async handle({ collectionSharing }, { path }, { principal }) {
      const { collection, isNew } = await collectionSharing.fork(principal.orgId, principal.userId, path.slug)
      return reply.json(ownJson(collection), isNew ? 201 : 200)
    },
  }),

  importCollection: row({
    at: 'POST /me/collections/import/{slug}',
    auth: 'session',
    access: { role: 'admin' },
    tag,
    summary:
      'Makes a collection the routing of its model for the whole organisation, instead of the saved chain. A collection of another organisation is forked first, so later changes by its author have no effect.',
    input: { path: slugPath },
    output: z.object({
      ok: z.literal(true),
      id: z.int().describe('The collection of the organisation that was applied.'),
      model: z.string(),
      steps: stepsView,
      forked_as: z.string().nullable().describe("Slug of the organisation's fork; null for a collection of its own."),
    }),
    errors: ['not_found', 'cap', 'bad_model', 'bad_steps'],
    async handle({ collectionSharing }, { path }, { principal }) {
      const { id, model, steps, forkedAs } = await collectionSharing.apply(principal.orgId, principal.userId, path.slug)
      return { ok: true, id, model, steps: [...steps], forked_as: forkedAs }
    },
  }),

  listPublicCollections: row({
    at: 'GET /v1/collections',
    auth: 'public',
    access: {},
    tag,
    summary:
      'The public collections: the 200 with the most stars, the newest first among equals. With a credential: which of them your organisation has starred.',
    input: {
      query: z.object({
        model: z
          .string()
          .max(256)
          .regex(/^\P{Cc}*$/u, 'must not hold control characters')
          .optional()
          .describe('Only those for this model.'),
      }),
      headers: pageHeaders,
    },
    output: z.object({ collections: z.array(listedView) }),
    errors: ['bad_request', 'database_unavailable'],
    async handle({ collectionRegistry }, { query, headers }, { principal }) {
      return replyWithPage(await collectionRegistry.list(query.model ?? null, principal?.orgId ?? null), headers['if-none-match'], principal === null)
    },
  }),

  getPublicCollection: row({
    at: 'GET /v1/collections/{slug}',
    auth: 'public',
    access: {},
    tag,
    summary: 'A public collection with its versions.',
    input: { path: z.object({ slug: z.string().max(256).describe('Slug of a public collection.') }), headers: pageHeaders },
    output: collectionWithVersionsView,
    errors: ['not_found', 'database_unavailable'],
    async handle({ collectionRegistry }, { path, headers }, { principal }) {
      return replyWithPage(await collectionRegistry.page(path.slug, principal?.orgId ?? null), headers['if-none-match'], principal === null)
    },
  }),
}
