// The thread that lays the map out.

import { layOut } from "./layout.js";

onmessage = ({ data: { vectors, dim } }) => postMessage(layOut(vectors, dim));
