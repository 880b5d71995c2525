import { until } from '../../harness/until.ts'
import { startWebhookReceiver } from '../../harness/webhook-receiver.ts'
import { startDelivery } from './delivery-setup.ts'

/** The result of a run. */
export interface LoadResult {
  /** Number of different events that the receiver acknowledged with a 2xx. */
  readonly delivered: number
  /** Number of deliveries that are not acknowledged. */
  readonly lost: number
  /** Number of requests that the receiver answered with a failure. */
  readonly failures: number
  /** Highest number of concurrent requests at one endpoint. */
  readonly atOnceMax: number
  readonly tookMs: number
  /** CPU time of this process: the workers, the receiver, and an embedded database. */
  readonly cpuMs: number
}

/**
 * Sends `count` deliveries to four endpoints through two workers. One request in 20 fails, always the first attempt of its delivery. Retries come
 * after a second. With `isHurried`, the clock moves forward all the time, so that the run does not wait for pauses of failing endpoints.
 */
export async function deliverMany(count: number, isHurried: boolean): Promise<LoadResult> {
  const [setup, receiver] = await Promise.all([startDelivery(), startWebhookReceiver()])
  const endpointCount = 4
  const concurrency = 4
  let arrived = 0
  let failures = 0
  const acknowledged = new Set<string>()
  receiver.answer(({ deliveryId, earlier }) => {
    arrived++
    if (earlier === 0 && arrived % 20 === 0) {
      failures++
      return { status: 500 }
    }
    acknowledged.add(deliveryId)
    return {}
  })
  try {
    const orgId = await setup.newOrg()
    const endpoints = []
    for (let made = 0; made < endpointCount; made++) endpoints.push(await setup.endpoint(`${receiver.url}/${made}`, orgId))
    await setup.emitMany(orgId, count / endpointCount)
    const [startMs, startCpu] = [performance.now(), process.cpuUsage()]
    for (let workers = 0; workers < 2; workers++) setup.worker({ concurrency, timeoutMs: 20_000, failuresMax: 1000, retryS: '1' })
    await until(
      async () => {
        if (isHurried) setup.clock.advance(1_000)
        return (await setup.openCount()) === 0
      },
      'everything is settled',
      300_000,
    )
    const tookMs = performance.now() - startMs
    const { user, system } = process.cpuUsage(startCpu)
    const rows = (await Promise.all(endpoints.map(endpoint => endpoint.deliveries()))).flat()
    return {
      delivered: acknowledged.size,
      lost: rows.filter(({ status }) => status !== 'acknowledged').length + count - rows.length,
      failures,
      atOnceMax: Math.max(...endpoints.map((_, index) => receiver.openAt(`/${index}`).max)),
      tookMs,
      cpuMs: (user + system) / 1000,
    }
  } finally {
    await setup.stopAll()
    await Promise.all([receiver.close(), setup.database.dispose()])
  }
}
