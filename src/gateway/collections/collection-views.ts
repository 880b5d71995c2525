/** Writes collections in the form of the API. */
import { z } from 'zod'
import type { CollectionRow, VersionRow } from './collection-queries.ts'
import { withoutOwnServers } from './collection-rules.ts'
import type { ListedRow, PublicRow } from './registry-queries.ts'

const step = z.object({ model: z.string(), provider: z.string().optional() })
export const stepsView = z.array(step).describe('Dialed in this order; provider only where the step names one.')

const fields = {
  id: z.int(),
  slug: z.string().describe('Its address. It never changes, and is never given to another collection.'),
  name: z.string(),
  model: z.string().describe('The model of the catalog that it serves.'),
  steps: stepsView,
  readme_md: z.string().describe('Markdown, as it was written.'),
  public: z.boolean(),
  version: z.int().describe('1, and one more with every edit of name, model, steps or readme.'),
  stars: z.int(),
  forks: z.int().describe('Forks that there are now.'),
  starred: z.boolean().describe("Whether the caller's organisation has starred it."),
  forked_from: z.string().nullable().describe('Slug of the collection that it was forked from.'),
  monitored: z.boolean(),
  created_at: z.string(),
  updated_at: z.string(),
}
export const collectionView = z.object(fields)
export const listedView = z.object({
  ...fields,
  readme_md: z.string().describe('The beginning of the readme.'),
  readme_cut: z.boolean().describe('Whether the readme goes on; the whole of it is in GET /v1/collections/{slug}.'),
})

const versions = z
  .array(z.object({ version: z.int(), name: z.string(), model: z.string(), steps: stepsView, created_at: z.string() }))
  .describe('The newest 100, newest first, the present one among them.')
export const collectionWithVersionsView = z.object({ ...fields, versions })

type CollectionJson = z.output<typeof collectionView>

/** Returns the view of the organisation that has the collection. */
export function ownJson(row: CollectionRow): CollectionJson {
  return { ...common(row), public: row.isPublic, starred: row.starred }
}

/** Returns the view for everybody. It does not show who has starred the collection. */
export function publicJson(row: PublicRow): CollectionJson {
  return { ...common(row), public: true, starred: false }
}

export function listedJson(row: ListedRow): z.output<typeof listedView> {
  return { ...publicJson(row), readme_cut: row.isReadmeCut }
}

/** Returns versions for the organisation that has the collection. */
export function versionsJson(rows: readonly VersionRow[]): z.output<typeof versions> {
  return rows.map(row => ({ version: row.version, name: row.name, model: row.modelId, steps: [...row.steps], created_at: row.createdAt.toISOString() }))
}

/** Returns versions for everybody. */
export const publicVersionsJson = (rows: readonly VersionRow[]): z.output<typeof versions> =>
  versionsJson(rows.map(row => ({ ...row, steps: withoutOwnServers(row.steps) })))

function common(row: PublicRow): Omit<CollectionJson, 'public' | 'starred'> {
  return {
    id: row.id,
    slug: row.slug,
    name: row.name,
    model: row.modelId,
    steps: [...row.steps],
    readme_md: row.readmeMd,
    version: row.version,
    stars: row.stars,
    forks: row.forks,
    forked_from: row.forkedFromSlug,
    monitored: row.monitored,
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
  }
}
