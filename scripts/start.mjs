/** `npm start` makes the checkout ready, then runs the gateway. */
import { runBuilt } from './run.mjs'

await runBuilt('main.js', process.argv.slice(2))
