import { z } from 'zod'
import { endpointOf, type Reply } from '../../../platform/endpoint.ts'
import type { Inference } from '../inference.ts'
import { charging } from './charging-errors.ts'
import { formFile, formRouterFields, routerFields } from './schemas.ts'

const row = endpointOf<{ inference: Inference }>()

const transcriptionForm = z
  .looseObject({
    file: formFile('The recording: mp3, wav, m4a, webm, ogg, flac and what else the provider reads; 25 MB at most.'),
    model: z.string(),
    language: z.string().optional().describe('Language of the recording, as an ISO 639-1 code.'),
    prompt: z.string().optional().describe('Words and spellings to expect. All text fields together have at most 32000 characters.'),
    temperature: z.string().optional().describe('A number from 0 to 2.'),
    response_format: z.enum(['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json']).optional().describe('Default: json.'),
    'timestamp_granularities[]': z.array(z.string()).optional(),
    stream: z.string().optional().describe('true: the text in events, where the provider streams.'),
    ...formRouterFields,
  })
  .meta({ examples: [{ model: 'sandbox-audio', file: '@hello.wav' }] })

const speechRequest = z
  .looseObject({
    model: z.string(),
    input: z.string().min(1).describe('The text to speak: at most 4096 characters (Unicode code points). They are charged, with those of instructions.'),
    voice: z.string().optional().describe('Default: the default of the model.'),
    response_format: z.enum(['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm']).optional().describe('Default: mp3.'),
    speed: z.number().min(0.25).max(4).optional(),
    instructions: z.string().optional().describe('How to speak: at most 4096 characters, which are charged like those of input.'),
    stream_format: z.enum(['audio', 'sse']).optional().describe('sse: the audio in events, where the provider sends them.'),
    ...routerFields,
  })
  .meta({ examples: [{ model: 'sandbox-speech', input: 'Hello', response_format: 'wav' }] })

export const audioEndpoints = {
  transcriptions: row({
    at: 'POST /v1/audio/transcriptions',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: 'Speech to text, charged by the second. Text and subtitles come with the type that the provider gives them.',
    input: { body: transcriptionForm, bodyKind: 'multipart' },
    output: z.looseObject({ text: z.string().optional() }),
    errors: [...charging, 'model_not_found_media', 'unsupported_media_type', 'payload_too_large'],
    inference: true,
    handle: ({ inference }, { body }, call): Promise<Reply> => inference.transcribe(body, call),
  }),
  speech: row({
    at: 'POST /v1/audio/speech',
    auth: 'key',
    access: { agentScope: 'inference' },
    tag: 'inference',
    summary: 'Text to speech, as the bytes come from the provider; charged by the character.',
    input: { body: speechRequest, bodyKind: 'inference' },
    output: { media: 'audio/*' },
    errors: [...charging, 'model_not_found_media'],
    inference: true,
    handle: ({ inference }, { body }, call): Promise<Reply> => inference.speak(body, call),
  }),
}
