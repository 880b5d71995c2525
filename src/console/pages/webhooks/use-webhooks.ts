import { keepPreviousData, useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { api, type CallOptions, type ReplyOf } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'

export type Webhook = ReplyOf<'listWebhooks'>['webhooks'][number]
export type EventType = ReplyOf<'listWebhooks'>['events'][number]
export type Delivery = ReplyOf<'listWebhookDeliveries'>['deliveries'][number]
export type WebhookChanges = CallOptions<'changeWebhook'>['body']

const pageSize = 50
/** The pause between two reads while a delivery is about to be sent. */
const waitingMs = 2_000
/** A delivery whose next attempt is nearer than this is about to be sent. */
const soonMs = 60_000

/** Returns the endpoints with all event types. The gateway bounds the endpoints of an organisation, so the list has no pages. */
export const useWebhooks = () => useQuery(apiQuery('listWebhooks'))

const isSoon = ({ status, next_attempt_at: at }: Pick<Delivery, 'status' | 'next_attempt_at'>): boolean =>
  (status === 'pending' || status === 'failed') && at !== null && Date.parse(at) - Date.now() < soonMs

/** Returns the deliveries of an endpoint in the pages that were read so far. They are read again while one of them is about to be sent. */
export function useDeliveries(id: number) {
  return useInfiniteQuery({
    queryKey: ['listWebhookDeliveries', 'pages', id],
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api('listWebhookDeliveries', { path: { id }, query: { limit: pageSize, ...(pageParam === undefined ? {} : { before: pageParam }) }, signal }),
    getNextPageParam: page => (page.next_before === null ? undefined : String(page.next_before)),
    select: data => data.pages.flatMap(({ deliveries }) => deliveries),
    refetchInterval: query => (query.state.data?.pages.some(page => page.deliveries.some(isSoon)) === true ? waitingMs : false),
  })
}

/** Returns one delivery with its payload and attempts. It is read again while it is about to be sent. */
export const useDelivery = (id: number, did: string) =>
  useQuery({
    ...apiQuery('getWebhookDelivery', { path: { id, did } }),
    refetchInterval: query => (query.state.data !== undefined && isSoon(query.state.data) ? waitingMs : false),
  })

const deliveriesChanged = (): Promise<void> => invalidate('listWebhookDeliveries', 'getWebhookDelivery')

/** Queues a test of an endpoint. */
export function useTestWebhook(id: number, onDone: (delivery: Delivery) => void) {
  return useMutation({
    mutationFn: () => api('testWebhook', { path: { id } }),
    onSuccess: async ({ delivery }) => {
      await deliveriesChanged()
      onDone(delivery)
    },
  })
}

/** Queues one delivery again. */
export function useRedeliver(id: number, did: string, onDone: () => void) {
  return useMutation({
    mutationFn: () => api('redeliverWebhookDelivery', { path: { id, did } }),
    onSuccess: async () => {
      await deliveriesChanged()
      onDone()
    },
  })
}

/** Changes an endpoint. Only the fields that are given are sent. */
export function useChangeWebhook(id: number, onDone: (webhook: Webhook) => void) {
  return useMutation({
    mutationFn: (changes: WebhookChanges) => api('changeWebhook', { path: { id }, body: changes }),
    onSuccess: async webhook => {
      await Promise.all([invalidate('listWebhooks'), deliveriesChanged()])
      onDone(webhook)
    },
  })
}
