/** The name of the image panel: `<service>/image-sangam` or `image-sangam`, and either with `:india` or `:residency:india` behind it. */

/** The id that the catalog lists, and whether the name asks for India alone; null for every other model. */
export function panelIdOf(modelId: string, serviceId: string): { readonly id: string; readonly indiaOnly: boolean } | null {
  const id = `${serviceId}/image-sangam`
  for (const name of [id, 'image-sangam']) {
    if (modelId === name) return { id, indiaOnly: false }
    if (modelId === `${name}:india` || modelId === `${name}:residency:india`) return { id, indiaOnly: true }
  }
  return null
}
