/** The names of the image styles that catalog rows may use. */
export const imageStyleIds = [
  'openai',
  'openai-gpt-image',
  'openai-dall-e',
  'together',
  'xai',
  'zhipu',
  'bytedance',
  'stepfun',
  'gemini',
  'stability',
  'fireworks',
  'fireworks-diffusion',
  'minimax',
  'black-forest-labs',
  'alibaba',
] as const
export type ImageStyleId = (typeof imageStyleIds)[number]
