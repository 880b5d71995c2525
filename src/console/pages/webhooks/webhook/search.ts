/** `delivery` shows one delivery beside the list. */
export interface WebhookSearch {
  readonly tab?: 'settings'
  readonly delivery?: string
}
