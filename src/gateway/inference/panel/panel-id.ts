/** The names of the image panel: `<service>/image-sangam` and `image-sangam`, each also with the suffix `:india` or `:residency:india`. */

/** Returns the id in the catalog, and whether the name restricts the panel to India. Null for every other model. */
export function panelIdOf(modelId: string, serviceId: string): { readonly id: string; readonly indiaOnly: boolean } | null {
  const id = `${serviceId}/image-sangam`
  for (const name of [id, 'image-sangam']) {
    if (modelId === name) return { id, indiaOnly: false }
    if (modelId === `${name}:india` || modelId === `${name}:residency:india`) return { id, indiaOnly: true }
  }
  return null
}
