/** Schemas of the image endpoints for OpenAPI and for readers. wire/images.ts makes the checks that a schema cannot make. */
import { z } from 'zod'
import { formFile, formRouterFields, routerFields } from './schemas.ts'

const { route: _chatOnly, ...routing } = routerFields

const size = z
  .string()
  .regex(/^[1-9]\d{0,4}x[1-9]\d{0,4}$/)
  .optional()
const format = z.enum(['url', 'b64_json']).optional().describe('Default: url. A provider that gives base64 alone gives base64.')

export const imagesRequestSchema = z
  .looseObject({
    model: z.string().optional().describe('Default: sdxl. image-sangam is the panel: three models draw and the best picture is given.'),
    prompt: z.string().min(1).describe('At most 32000 characters.'),
    n: z.int().min(1).optional().describe('Default: 1. More than 4 are taken for 4.'),
    size: size.describe('WIDTHxHEIGHT in pixels. Default: 1024x1024.'),
    response_format: format,
    quality: z.string().optional().describe('Forwarded where the provider knows it.'),
    user: z.string().optional().describe('Forwarded where the provider knows it.'),
    ...routing,
  })
  .meta({ examples: [{ model: 'sandbox-image', prompt: 'An otter in a lighthouse', size: '512x512', response_format: 'b64_json' }] })

export const imageEditSchema = z
  .looseObject({
    image: formFile('A PNG, JPEG or WebP file; for up to 16 of them the field is image[].'),
    prompt: z.string().min(1).describe('At most 32000 characters.'),
    model: z.string().optional().describe('Default: gpt-image-1.'),
    mask: formFile('A file whose transparent pixels mark what is changed.').optional(),
    n: z.string().optional().describe('Default: 1. More than 4 are taken for 4.'),
    size: size.describe('Default: as the provider decides.'),
    response_format: format,
    ...formRouterFields,
  })
  .meta({ examples: [{ model: 'sandbox-image', prompt: 'The same in blue', image: '@otter.png' }] })

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
