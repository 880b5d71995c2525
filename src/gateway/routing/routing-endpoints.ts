export const routingEndpoints = {}
