import type { Model } from './model.ts'

/** The image models that a panel call runs concurrently. */
export const panelMembers = ['flux-1-schnell', 'flux-1-dev', 'sdxl'] as const

/** Number of pictures in a panel call. */
export const panelSize = panelMembers.length

/**
 * Returns the catalog entry of the image panel `<service>/image-sangam`. It has the routes of all panel members, and its price is the sum of their
 * prices. Returns null while a member is missing. The routes of `standIn` come last. They serve only callers who can reach no other route (see
 * `isSandbox`).
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
