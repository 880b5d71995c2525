import type { Target } from '../dialect.ts'
import { asObject, failedWith, type ImageStyle, madeOf, objectOf, refused, textOr, unusable } from '../image-style.ts'
import { headersFor, jsonRequest, lostOf, refuseEdits, splitOthers } from './request-parts.ts'
import { nearestShape, steppedSize } from './sizes.ts'

/** The only sizes of the Qwen image models. These models make one picture for each task. */
const qwenSizes = ['1664*928', '1472*1104', '1328*1328', '1104*1472', '928*1664']
const isQwen = ({ upstreamModel }: Target): boolean => upstreamModel.startsWith('qwen-image')
const parameters = ['seed', 'prompt_extend', 'watermark']

/** Alibaba's asynchronous tasks (Qwen-Image, Wan). They are on the same host as the OpenAI-compatible API. A waiting task can be cancelled. */
export const alibabaTasks: ImageStyle = {
  imagesPerRequest: target => (isQwen(target) ? 1 : 4),

  request(params, target) {
    refuseEdits(params, target)
    const { kept, left } = splitOthers(params, [...parameters, 'negative_prompt'])
    const { negative_prompt, ...others } = kept
    const { size, isExact } = sizeOf(params.size, target)
    const body = {
      model: target.upstreamModel,
      input: { prompt: params.prompt, ...(negative_prompt === undefined ? {} : { negative_prompt }) },
      parameters: { ...others, size, n: params.n },
    }
    const headers = { ...headersFor(target), 'x-dashscope-async': 'enable' }
    const dropped = [...lostOf(params, { size: isExact, format: params.format === 'url' }), ...left]
    return jsonRequest(`${apiOf(target)}/services/aigc/text2image/image-synthesis`, headers, body, dropped, target)
  },

  reply(reply, target) {
    const id = asObject(objectOf(reply)?.['output'])?.['task_id']
    if (typeof id !== 'string' || !/^[\w-]{1,128}$/.test(id)) return unusable('it answered without a task')
    const url = `${apiOf(target)}/tasks/${id}`
    return { kind: 'job', job: { url, headers: headersFor(target), cancelUrl: `${url}/cancel` } }
  },

  poll(reply) {
    const output = asObject(objectOf(reply)?.['output'])
    switch (output?.['task_status']) {
      case 'PENDING':
      case 'RUNNING':
      case 'SUSPENDED':
        return { kind: 'pending' }
      case 'SUCCEEDED':
        return madeOf(resultsOf(output['results']))
      case 'FAILED':
        return failureOf(textOr(output['code'], 'no code'), textOr(output['message'], 'no reason given'))
      default:
        return unusable(`its task ended as ${textOr(output?.['task_status'], 'nothing')}`)
    }
  },
}

const apiOf = ({ provider }: Target): string => provider.baseUrl.replace(/\/compatible-mode\/v1$/, '/api/v1')

function sizeOf(wanted: { width: number; height: number } | null, target: Target): { size: string; isExact: boolean } {
  if (isQwen(target)) {
    const { shape } = nearestShape(wanted, qwenSizes)
    return { size: shape, isExact: wanted !== null && shape === `${wanted.width}*${wanted.height}` }
  }
  const { size, isExact } = steppedSize(wanted, { step: 1, min: 512, max: 1440 })
  return { size: `${size.width}*${size.height}`, isExact }
}

/** Returns the finished pictures. A failed picture of a task has a code instead of a URL. */
function resultsOf(results: unknown): { url: string }[] {
  if (!Array.isArray(results)) return []
  return results.flatMap(result => {
    const url = asObject(result)?.['url']
    return typeof url === 'string' && url !== '' ? [{ url }] : []
  })
}

function failureOf(code: string, message: string) {
  const said = `${message} (${code})`
  if (/^(DataInspectionFailed|InvalidParameter|IPInfringementSuspect)/.test(code)) return refused(said)
  if (/^Throttling/.test(code)) return failedWith({ kind: 'rate-limited', status: 429, retryAfterSeconds: null }, said)
  if (/^Arrearage/.test(code)) return failedWith({ kind: 'billing', status: 402 }, said)
  return failedWith({ kind: 'transient', status: null }, said)
}
