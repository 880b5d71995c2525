/** Schemas of the image rows for OpenAPI and readers. What is checked by hand stands in wire/images.ts. */
import { z } from 'zod'

const routing = {
  optimize: z.enum(['price', 'latency', 'uptime', 'throughput', 'quality', 'auto']).optional().describe('Which eligible route goes first. Default: price.'),
  provider: z.string().optional().describe('Pins one provider.'),
  data_policy: z.literal('india_only').optional().describe('Only routes in India, also on failover.'),
  upstream_key: z.string().optional().describe('Your own provider key for this call. Never stored.'),
}

const size = z
  .string()
  .regex(/^[1-9]\d{0,4}x[1-9]\d{0,4}$/)
  .optional()
const format = z.enum(['url', 'b64_json']).optional().describe('Default: url. A provider that gives base64 alone gives base64.')

export const imagesRequestSchema = z.looseObject({
  model: z.string().optional().describe('Default: sdxl. The panel: brigade/image-sangam.'),
  prompt: z.string().min(1),
  n: z.int().min(1).optional().describe('Default: 1. More than 4 are taken for 4.'),
  size: size.describe('WIDTHxHEIGHT in pixels. Default: 1024x1024.'),
  response_format: format,
  quality: z.string().optional().describe('Forwarded where the provider knows it.'),
  user: z.string().optional().describe('Forwarded where the provider knows it.'),
  exclude: z.array(z.string()).optional().describe('Providers, or provider/model, that must not be dialed.'),
  ...routing,
})

export const imageEditSchema = z.looseObject({
  image: z.string().describe('One or more files, as image or image[]: PNG, JPEG or WebP.'),
  prompt: z.string().min(1),
  model: z.string().optional().describe('Default: gpt-image-1.'),
  mask: z.string().optional().describe('A file whose transparent pixels mark what is changed.'),
  n: z.string().optional(),
  size: size.describe('Default: as the provider decides.'),
  response_format: format,
  exclude: z.string().optional().describe('Repeated, or a JSON array.'),
  ...routing,
})

const member = z.object({ model: z.string(), provider: z.string().nullable() })

export const imagesResponseSchema = z.looseObject({
  created: z.int(),
  data: z.array(z.looseObject({ url: z.string().nullable().optional(), b64_json: z.string().nullable().optional() })).min(1),
  br_sangam: z
    .object({
      kind: z.literal('image'),
      panel: z.array(member.extend({ ok: z.boolean() })),
      chosen: member.extend({ index: z.int() }),
      judge_model: z.string().nullable(),
      judged: z.boolean(),
      reason: z.string(),
    })
    .optional(),
})
