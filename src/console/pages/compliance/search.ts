/** The lengths of time that the documents can cover. */
export const windows = ['7d', '30d', '90d', '365d'] as const
export type DocumentWindow = (typeof windows)[number]
export const defaultWindow: DocumentWindow = '30d'
