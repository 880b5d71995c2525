import type { Model } from './model.ts'

/** The image models that a panel call runs side by side. */
export const panelMembers = ['flux-1-schnell', 'flux-1-dev', 'sdxl'] as const

/** How many pictures a panel call compares. */
export const panelSize = panelMembers.length

/**
 * Catalog entry of the image panel `<service>/image-sangam`: the routes of its members, priced as their sum. null while a member is missing. The routes
 * of `standIn` follow; callers who can reach no other route use them (see `isSandbox`).
 */
export function panelModel(models: ReadonlyMap<string, Model>, serviceId: string, standIn?: Model): Model | null {
  const members = panelMembers.flatMap(id => models.get(id) ?? [])
  const [first] = members
  if (!first || members.length < panelMembers.length) return null
  return {
    ...first,
    id: `${serviceId}/image-sangam`,
    ownedBy: serviceId,
    inrPerImage: members.reduce((sum, member) => sum + (member.inrPerImage ?? 0), 0),
    routes: [...members, ...(standIn === undefined ? [] : [standIn])].flatMap(member => member.routes),
  }
}
