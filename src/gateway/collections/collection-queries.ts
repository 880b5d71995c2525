import { statement } from '../../platform/db.ts'

/** A step as it is stored and shown. */
export interface CollectionStep {
  readonly model: string
  readonly provider?: string
}

/** A collection as its own organisation sees it. */
export interface CollectionRow {
  readonly id: number
  readonly orgId: number
  readonly slug: string
  readonly name: string
  readonly modelId: string
  readonly steps: readonly CollectionStep[]
  readonly readmeMd: string
  readonly isPublic: boolean
  readonly version: number
  readonly stars: number
  readonly forks: number
  /** Whether its own organisation has starred it. */
  readonly starred: boolean
  readonly forkedFromId: number | null
  /** Slug of the source as it was called when it was forked; slugs never change. */
  readonly forkedFromSlug: string | null
  readonly monitored: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
}

const columns = `c.id, c.org_id as "orgId", c.slug, c.name, c.model_id as "modelId", c.steps, c.readme_md as "readmeMd", c.is_public as "isPublic",
     c.version, c.stars, c.forks, exists (select 1 from collection_stars s where s.collection_id = c.id and s.org_id = c.org_id) as "starred",
     c.forked_from_id as "forkedFromId", c.forked_from_slug as "forkedFromSlug", c.monitored, c.created_at as "createdAt", c.updated_at as "updatedAt"`

/** A collection of the organisation by its slug; none for a slug of somebody else, public or not. */
export const findOwn = statement<[orgId: number, slug: string], CollectionRow>(
  'collections.find_own',
  `select ${columns} from collections c where c.org_id = $1::int and c.slug = $2::text`,
)
